// Compiles the contracts that orders are executed on, and writes `contracts.json`: for each its creation code, the
// functions it has, where its state lies, the package it is from and the compiler. No source of others is kept. Beside
// them stands a digest of what they were made from, by which a test knows whether that has changed.
//
//   npm ci --ignore-scripts && node compile.mjs
import { createRequire } from "node:module";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";

const require = createRequire(import.meta.url);
const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const permit2 = "@uniswap/v4-periphery/lib/permit2/src";
const solmate = "@uniswap/v4-periphery/lib/permit2/lib/solmate/src";
const safe = "@safe-global/safe-contracts/contracts";
const openzeppelin = "@openzeppelin/contracts";

const JOBS = [
  { from: openzeppelin, file: "contracts/Token.sol", names: ["PlainToken", "Token"] },
  { from: openzeppelin, file: "contracts/Others.sol", names: ["Nft", "Multi", "Vault", "Wrapped"] },
  { from: openzeppelin, file: "contracts/Callers.sol", names: ["Multicall3", "Router", "Wallet"] },
  { from: openzeppelin, file: "contracts/X402.sol", names: ["ExactProxy", "UptoProxy"], evmVersion: "paris", viaIR: true },
  { from: "@safe-global/safe-contracts", file: `${safe}/Safe.sol`, names: ["Safe"] },
  { from: "@safe-global/safe-contracts", file: `${safe}/proxies/SafeProxy.sol`, names: ["SafeProxy"] },
  { from: "@uniswap/v4-periphery", file: `${permit2}/Permit2.sol`, names: ["Permit2"], solc: "solc-0.8.17", evmVersion: "london", viaIR: true },
];

function read(path) {
  const place = path.replace(/^solmate\/src/, solmate);
  return { contents: readFileSync(place.startsWith("@") ? join(modules, place) : join(here, place), "utf8") };
}

const found = {};
for (const { from, file, names, solc: name = "solc", evmVersion = "cancun", viaIR = false } of JOBS) {
  const solc = require(name);
  const output = { "*": { "*": ["abi", "evm.bytecode.object", "evm.methodIdentifiers", "storageLayout"] } };
  const settings = { optimizer: { enabled: true, runs: 200 }, viaIR, evmVersion, outputSelection: output };
  const input = { language: "Solidity", sources: { [file]: { content: read(file).contents } }, settings };
  const made = JSON.parse(solc.compile(JSON.stringify(input), { import: read }));
  const wrong = (made.errors ?? []).filter((one) => one.severity === "error");
  if (wrong.length) throw new Error(wrong.map((one) => one.formattedMessage).join("\n"));
  const { version, license } = JSON.parse(readFileSync(join(modules, from, "package.json"), "utf8"));
  for (const contract of names) {
    const { evm, abi, storageLayout } = made.contracts[file][contract];
    const payable = abi.filter((one) => one.stateMutability === "payable").map((one) => one.name ?? one.type);
    found[contract] = {
      source: file.startsWith("@") ? file : `tests/execution/${file}`,
      package: `${from} ${version} (${license})`,
      compiler: `${solc.version()}, ${evmVersion}${viaIR ? ", via IR" : ""}, 200 runs`,
      functions: evm.methodIdentifiers,
      payable,
      storage: Object.fromEntries(storageLayout.storage.map(({ slot, label }) => [slot, label])),
      creation: deflateSync(Buffer.from(evm.bytecode.object, "hex"), { level: 9 }).toString("base64"),
    };
  }
}
const made = createHash("sha256");
for (const name of ["compile.mjs", "contracts/Callers.sol", "contracts/Others.sol", "contracts/Token.sol", "contracts/X402.sol", "package-lock.json"]) {
  made.update(readFileSync(join(here, name)));
}
writeFileSync(join(here, "contracts.json"), `${JSON.stringify({ made_from: made.digest("hex"), contracts: found }, null, 1)}\n`);
