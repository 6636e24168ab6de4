// The same as steps.py, for programs of Node.
import {createHash} from 'node:crypto';
export const {BASE, KEY} = process.env;
const digest = (content) => createHash('sha256').update(content).digest();
export const sizeAndDigest = (content) => [content.length, digest(content).toString('hex')];
export const UPLOADED = Buffer.concat(Array(5 * 2 ** 20 / 32).fill(digest('upload')));
export async function run(steps) {
  for (const step of process.argv.slice(2)) {
    let got;
    try {
      got = await steps[step]();
    } catch (problem) {
      got = {error: problem.constructor.name, said: String(problem.message).slice(0, 500)};
    }
    console.log(`{"step": ${JSON.stringify(step)}, "got": ${JSON.stringify(got)}}`);
  }
}
