// The spelling of an Ethereum address that a sign-in message must have (EIP-55). It needs Keccak-256, which browsers
// do not have; the constants of the permutation are worked out as its specification defines them.

const WIDTH = 64n;
const MASK = (1n << WIDTH) - 1n;
const RATE = 136;

function roundConstants() {
  const found = [];
  let register = 1;
  for (let round = 0; round < 24; round += 1) {
    let constant = 0n;
    for (let bit = 0; bit < 7; bit += 1) {
      if (register & 1) constant |= 1n << BigInt((1 << bit) - 1);
      register = (register << 1) ^ (register >> 7 ? 0x171 : 0);
    }
    found.push(constant);
  }
  return found;
}

const CONSTANTS = roundConstants();
const turned = (lane, by) => ((lane << BigInt(by)) | (lane >> (WIDTH - BigInt(by)))) & MASK;

function permute(lanes) {
  for (const constant of CONSTANTS) {
    const columns = [0, 1, 2, 3, 4].map((x) => lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]);
    for (let at = 0; at < 25; at += 1) lanes[at] ^= columns[(at + 4) % 5] ^ turned(columns[(at + 1) % 5], 1);
    let [x, y, moved] = [1, 0, lanes[1]];
    for (let step = 0; step < 24; step += 1) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      [lanes[x + 5 * y], moved] = [turned(moved, (((step + 1) * (step + 2)) / 2) % 64), lanes[x + 5 * y]];
    }
    for (let row = 0; row < 25; row += 5) {
      const [a, b, c, d, e] = lanes.slice(row, row + 5);
      [a ^ (~b & c), b ^ (~c & d), c ^ (~d & e), d ^ (~e & a), e ^ (~a & b)].forEach((lane, x) => {
        lanes[row + x] = lane & MASK;
      });
    }
    lanes[0] ^= constant;
  }
}

// The first bytes of the hash of a text shorter than one block, in hex; an address needs no more.
function keccak(text) {
  const block = new Uint8Array(RATE);
  block.set(new TextEncoder().encode(text));
  block[text.length] ^= 0x01;
  block[RATE - 1] ^= 0x80;
  const view = new DataView(block.buffer);
  const lanes = Array.from({ length: 25 }, (_, at) => (at * 8 < RATE ? view.getBigUint64(at * 8, true) : 0n));
  permute(lanes);
  const hash = new DataView(new ArrayBuffer(32));
  [0, 1, 2, 3].forEach((at) => hash.setBigUint64(at * 8, lanes[at], true));
  return Array.from(new Uint8Array(hash.buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function checksum(address) {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak(digits);
  return `0x${Array.from(digits, (digit, at) => (hash[at] >= "8" ? digit.toUpperCase() : digit)).join("")}`;
}
