// What three encoders make of documents: one JSON document per line in, one JSON object of encoder and digest per line out.
import { createInterface } from "node:readline";
import ethUtil from "@metamask/eth-sig-util";
import { concat, keccak256, TypedDataEncoder } from "ethers";
import { hashTypedData } from "viem";

const DOMAIN = "EIP712Domain";

// ethers takes no type that nothing refers to.
function used(types, name) {
  const found = {};
  const waiting = [name];
  while (waiting.length) {
    const each = waiting.pop();
    if (each in found || !(each in types)) continue;
    found[each] = types[each];
    waiting.push(...types[each].map(({ type }) => type.split("[")[0]));
  }
  return found;
}

const encoders = {
  viem({ domain, types, primaryType, value }) {
    // It infers the type of an undeclared domain from values as programs write them, not as JSON does.
    const given = Object.fromEntries(Object.entries(domain).filter(([, each]) => each !== null));
    if (!types[DOMAIN] && given.version === "") throw new Error("viem leaves an empty version out");
    if (!types[DOMAIN] && "chainId" in given) given.chainId = BigInt(given.chainId);
    return hashTypedData({ domain: types[DOMAIN] ? domain : given, types, primaryType, message: value });
  },
  ethers({ domain, types, primaryType, value }) {
    const separator = types[DOMAIN]
      ? TypedDataEncoder.hashStruct(DOMAIN, used(types, DOMAIN), domain)
      : TypedDataEncoder.hashDomain(domain);
    return keccak256(concat(["0x1901", separator, TypedDataEncoder.hashStruct(primaryType, used(types, primaryType), value)]));
  },
  metamask({ domain, types, primaryType, value }) {
    // It takes a document that declares no domain for one whose domain is declared as empty.
    if (!types[DOMAIN]) throw new Error("no domain is declared");
    const digest = ethUtil.TypedDataUtils.eip712Hash({ domain, types, primaryType, message: value }, ethUtil.SignTypedDataVersion.V4);
    return `0x${Buffer.from(digest).toString("hex")}`;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const document = JSON.parse(line);
  const made = {};
  for (const [name, encoder] of Object.entries(encoders)) {
    try {
      made[name] = encoder(structuredClone(document));
    } catch (problem) {
      made[name] = `refused: ${String(problem.message).slice(0, 160)}`;
    }
  }
  console.log(JSON.stringify(made));
}
