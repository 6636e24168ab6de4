/**
 * An account for viem, and for libraries that want one (x402's clients).
 *
 * Nonce and fees are the caller's: one transaction after the other. `custody-sdk/provider` leaves them to the service.
 * Libraries take the chain from their node where nobody says it: with `chainId` nothing is signed for another one.
 */

import {
  getAddress, type Hex, hexToBytes, isAddressEqual, type LocalAccount, parseTransaction, recoverMessageAddress,
  recoverTransactionAddress, recoverTypedDataAddress, type Address, serializeTransaction, type TypedDataDefinition,
} from "viem";
import { toAccount } from "viem/accounts";

import { plain, type Signed } from "./asks.js";
import { utf8 } from "./bytes.js";
import type { Chain, Vault, Waits } from "./client.js";
import { BadArgument } from "./errors.js";
import { insist, nameOf, readable, signatureOf, type WholeOrder, wholeOrder } from "./orders.js";

// What viem keeps beside the fields of a transaction.
const BESIDE = ["account", "chain", "nonceManager", "parameters"];

/** Make an account whose wallet is in the vault. It has no key. */
export async function vaultAccount(vault: Vault, waits: Waits & Chain = {}): Promise<LocalAccount> {
  const address = getAddress((await vault.wallet()).walletAddress);
  return toAccount({
    address,
    async signTransaction(transaction) {
      const given = Object.entries(transaction).filter(([field]) => !BESIDE.includes(field));
      const order = wholeOrder(Object.fromEntries(given), address, waits.chainId);
      const signed = await vault.send(await nameOf("tx", order), order, waits);
      const raw = signed.signedTransaction as Hex;
      insist(await isOrder(raw, order, address), "The bytes are not the transaction that was asked for.", signed.txId);
      return raw;
    },
    async signMessage({ message }) {
      const raw = typeof message === "string" ? utf8(message) : bytesOf(message.raw);
      const signed = await vault.signMessage(await nameOf("message", raw), readable(raw), "evm", waits);
      return recovered(signed, address, (signature) => recoverMessageAddress({ message: { raw }, signature }));
    },
    async signTypedData(definition) {
      const { domain = {}, types, primaryType, message } = definition as unknown as TypedDataDefinition;
      const document = plain({ domain, types, primaryType, message }) as object;
      const signed = await vault.signTypedData(await nameOf("document", document), document, waits);
      const asked = definition as unknown as TypedDataDefinition;
      return recovered(signed, address, (signature) => recoverTypedDataAddress({ ...asked, signature }));
    },
    async sign() {
      throw noKey("sign");
    },
    async signAuthorization() {
      throw noKey("signAuthorization");
    },
  });
}

/** Say whether these bytes are this order, signed by this wallet, and nothing else. */
async function isOrder(raw: Hex, order: WholeOrder, address: Address): Promise<boolean> {
  try {
    const { r, s, yParity } = parseTransaction(raw) as { r?: Hex; s?: Hex; yParity?: number };
    if (r === undefined || s === undefined || yParity === undefined) return false;
    const wanted = serializeTransaction(
      {
        type: "eip1559",
        chainId: order.chainId,
        nonce: order.nonce,
        gas: BigInt(order.gasLimit),
        maxFeePerGas: BigInt(order.maxFeePerGas),
        maxPriorityFeePerGas: BigInt(order.maxPriorityFeePerGas),
        to: order.to as Address,
        value: BigInt(order.value),
        data: order.data as Hex,
      },
      { r, s, yParity },
    );
    if (wanted.toLowerCase() !== raw.toLowerCase()) return false;
    const by = await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` });
    return isAddressEqual(by, address);
  } catch {
    return false;
  }
}

async function recovered(signed: Signed, address: Address, by: (signature: Hex) => Promise<Address>): Promise<Hex> {
  const signature = signatureOf(signed);
  const signer = await by(signature).catch(() => null);
  insist(signer !== null && isAddressEqual(signer, address), "The signature is of something else.", signed.txId);
  return signature;
}

function bytesOf(raw: Hex | Uint8Array): Uint8Array {
  return typeof raw === "string" ? hexToBytes(raw) : raw;
}

function noKey(what: string): BadArgument {
  return new BadArgument(0, "unsupported", `${what} is not supported: nothing is signed that no rule can read.`);
}
