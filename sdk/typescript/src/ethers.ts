/**
 * A signer for ethers 6.
 *
 * Nonce and fees are the caller's: one transaction after the other. `custody-sdk/provider` leaves them to the service.
 * Libraries take the chain from their node where nobody says it: with `chainId` nothing is signed for another one.
 */

import {
  AbstractSigner, copyRequest, type Provider, resolveAddress, Transaction, type TransactionRequest, type TypedDataDomain,
  TypedDataEncoder, type TypedDataField, verifyMessage, verifyTypedData,
} from "ethers";

import { plain, type Signed } from "./asks.js";
import { utf8 } from "./bytes.js";
import type { Chain, Vault, Waits } from "./client.js";
import { insist, nameOf, readable, signatureOf, type WholeOrder, wholeOrder } from "./orders.js";

/** A signer whose wallet is in the vault. It has no key. */
export class VaultSigner extends AbstractSigner {
  readonly #vault: Vault;
  readonly #waits: Waits & Chain;
  #address: Promise<string> | undefined;

  constructor(vault: Vault, provider: Provider | null = null, waits: Waits & Chain = {}) {
    super(provider);
    this.#vault = vault;
    this.#waits = waits;
  }

  async getAddress(): Promise<string> {
    this.#address ??= this.#vault.wallet().then((wallet) => wallet.walletAddress);
    try {
      return await this.#address;
    } catch (failure) {
      this.#address = undefined;
      throw failure;
    }
  }

  connect(provider: Provider | null): VaultSigner {
    return new VaultSigner(this.#vault, provider, this.#waits);
  }

  async signTransaction(tx: TransactionRequest): Promise<string> {
    const own = await this.getAddress();
    const { gasLimit: gas, from, to, ...given } = copyRequest(tx);
    const [sender, receiver] = await Promise.all([from, to].map((one) => (one ? resolveAddress(one, this.provider) : undefined)));
    const order = wholeOrder({ ...given, gas, from: sender, to: receiver }, own, this.#waits.chainId);
    const signed = await this.#vault.send(await nameOf("tx", order), order, this.#waits);
    const raw = signed.signedTransaction ?? "";
    insist(isOrder(raw, order, own), "The bytes are not the transaction that was asked for.", signed.txId);
    return raw;
  }

  async signMessage(message: string | Uint8Array): Promise<string> {
    const raw = typeof message === "string" ? utf8(message) : message;
    const signed = await this.#vault.signMessage(await nameOf("message", raw), readable(raw), "evm", this.#waits);
    return this.#recovered(signed, (signature) => verifyMessage(raw, signature));
  }

  async signTypedData(
    domain: TypedDataDomain,
    types: Record<string, TypedDataField[]>,
    value: Record<string, unknown>,
  ): Promise<string> {
    const document = plain(TypedDataEncoder.getPayload(domain, types, value)) as object;
    const signed = await this.#vault.signTypedData(await nameOf("document", document), document, this.#waits);
    return this.#recovered(signed, (signature) => verifyTypedData(domain, types, value, signature));
  }

  async #recovered(signed: Signed, by: (signature: string) => string): Promise<string> {
    const signature = signatureOf(signed);
    const own = await this.getAddress();
    insist(quietly(() => by(signature)) === own, "The signature is of something else.", signed.txId);
    return signature;
  }
}

/** Say whether these bytes are this order, signed by this wallet, and nothing else. */
function isOrder(raw: string, order: WholeOrder, own: string): boolean {
  const { broadcast: _, referenceId: __, ...fields } = order;
  const wanted = Transaction.from({ type: 2, ...fields }).unsignedSerialized;
  return (
    quietly(() => {
      const found = Transaction.from(raw);
      return found.unsignedSerialized === wanted && found.serialized === raw.toLowerCase() && found.from === own;
    }) === true
  );
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
