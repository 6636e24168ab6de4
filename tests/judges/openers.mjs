// Other implementations of what opens a sealed master key file: SLIP-39 shares, and HPKE to an X25519 key.
import { createInterface } from "node:readline";
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import slip39 from "slip39";

const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");

const answers = {
  combine: ({ shares }) => hex(slip39.recoverSecret(shares)),
  split: ({ key, needed, shares }) => {
    const options = { threshold: 1, groups: [[needed, shares]], iterationExponent: 0, extendableBackupFlag: 1 };
    const made = slip39.fromArray([...bytes(key)], options);
    return [...Array(shares).keys()].flatMap((at) => made.fromPath(`r/0/${at}`).mnemonics);
  },
  seal: async ({ name, info, key }) => {
    const recipientPublicKey = await suite.kem.deserializePublicKey(bytes(name).buffer);
    const sender = await suite.createSenderContext({ recipientPublicKey, info: Buffer.from(info) });
    return hex(sender.enc) + hex(await sender.seal(bytes(key)));
  },
  open: async ({ secret, info, blob }) => {
    const recipientKey = await suite.kem.importKey("raw", bytes(secret), false);
    const given = { recipientKey, enc: bytes(blob.slice(0, 64)), info: Buffer.from(info) };
    return hex(await (await suite.createRecipientContext(given)).open(bytes(blob.slice(64))));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  process.stdout.write(JSON.stringify(await answers[asked.act](asked)) + "\n");
}
