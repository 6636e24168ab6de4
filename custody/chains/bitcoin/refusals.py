"""The refusals of a PSBT. Each message names the input or output, and what would pass."""

from custody.kit.errors import Invalid


class BadWalletScope(Invalid):
    """walletScope: must be like `bitcoin:mainnet:p2wpkh:0:0:0`: network, type, account, change and index.

    The network is mainnet, testnet, signet or regtest; the type p2wpkh, p2tr, p2sh-p2wpkh or p2pkh; the numbers are
    decimal, without leading zeros, `change` 0 or 1 and the others below 2147483648.
    """


class PsbtMalformed(Invalid):
    """psbtBase64: is not a PSBT of version 0 in strict base64; the message says what is wrong with it."""


class PsbtUnprovenInput(Invalid):
    """psbtBase64: an input's coin is not proven; add the whole transaction that made it as `nonWitnessUtxo`."""


class PsbtSighash(Invalid):
    """psbtBase64: an input asks for a sighash other than ALL (of taproot, DEFAULT too); remove it."""


class PsbtNoOwnInput(Invalid):
    """psbtBase64: no input is of the address of `walletScope` and still to be signed; the message says why."""


class PsbtFee(Invalid):
    """psbtBase64: the outputs pay more than the inputs bring, or the fee is below what nodes relay."""


class PsbtNonstandardOutput(Invalid):
    """psbtBase64: an output is dust, burns coins, or is of a kind or size that nodes do not relay."""


class FeeAboveCap(Invalid):
    """psbtBase64: the fee is above a cap of this deployment; lower it, or have the operator raise the cap."""
