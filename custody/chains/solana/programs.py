"""The Solana programs we know by address, and what their instructions are called."""

from solders.pubkey import Pubkey

SYSTEM = Pubkey.from_string("11111111111111111111111111111111")
TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
TOKEN_2022 = Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
ASSOCIATED_TOKEN = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
COMPUTE_BUDGET = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
MEMO_V1 = Pubkey.from_string("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo")
MEMO_V2 = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
WRAPPED_SOL = Pubkey.from_string("So11111111111111111111111111111111111111112")
RENT_SYSVAR = Pubkey.from_string("SysvarRent111111111111111111111111111111111")

_SYSTEM_NAMES = (
    "CreateAccount Assign Transfer CreateAccountWithSeed AdvanceNonceAccount WithdrawNonceAccount "
    "InitializeNonceAccount AuthorizeNonceAccount Allocate AllocateWithSeed AssignWithSeed TransferWithSeed "
    "UpgradeNonceAccount"
)
_SPL_NAMES = (
    "InitializeMint InitializeAccount InitializeMultisig Transfer Approve Revoke SetAuthority MintTo Burn CloseAccount "
    "FreezeAccount ThawAccount TransferChecked ApproveChecked MintToChecked BurnChecked InitializeAccount2 SyncNative "
    "InitializeAccount3 InitializeMultisig2 InitializeMint2 GetAccountDataSize InitializeImmutableOwner "
    "AmountToUiAmount UiAmountToAmount InitializeMintCloseAuthority TransferFeeExtension "
    "ConfidentialTransferExtension DefaultAccountStateExtension Reallocate MemoTransferExtension CreateNativeMint"
)
_ASSOCIATED_NAMES = "Create CreateIdempotent RecoverNested"
_COMPUTE_NAMES = "RequestUnits RequestHeapFrame SetComputeUnitLimit SetComputeUnitPrice SetLoadedAccountsDataSizeLimit"

# How many bytes of the data name the instruction, and the names in order.
_NAMES: dict[Pubkey, tuple[str, int, str]] = {
    SYSTEM: ("System", 4, _SYSTEM_NAMES),
    TOKEN: ("Token", 1, _SPL_NAMES),
    TOKEN_2022: ("Token-2022", 1, _SPL_NAMES),
    ASSOCIATED_TOKEN: ("AssociatedToken", 1, _ASSOCIATED_NAMES),
    COMPUTE_BUDGET: ("ComputeBudget", 1, _COMPUTE_NAMES),
    MEMO_V1: ("Memo", 0, "v1"),
    MEMO_V2: ("Memo", 0, "v2"),
}


def name_of(program: Pubkey, data: bytes) -> str:
    """Name an instruction for people, such as `Token.Approve`, or by its program's address if that is all we know."""
    if program not in _NAMES:
        return f"program {program}"
    title, width, words = _NAMES[program]
    names = words.split()
    if program == ASSOCIATED_TOKEN and not data:
        return f"{title}.{names[0]}"
    if len(data) < width:
        return f"{title} without an instruction"
    tag = int.from_bytes(data[:width], "little")
    return f"{title}.{names[tag]}" if tag < len(names) else f"{title} instruction {tag}"
