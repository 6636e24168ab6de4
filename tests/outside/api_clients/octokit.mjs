// Reads a list of three pages and a file in a folder, at the address and with the token that it is given.
import {Octokit} from '@octokit/rest';
const [baseUrl, auth] = process.argv.slice(2);
const octokit = new Octokit({baseUrl, auth, log: {debug() {}, info() {}, warn() {}, error: console.error}});
const issues = await octokit.paginate(octokit.rest.issues.listForRepo, {owner: 'o', repo: 'r'});
const file = await octokit.rest.repos.getContent({owner: 'o', repo: 'r', path: 'src/index.ts'});
console.log(JSON.stringify([issues.map((issue) => issue.id), file.data.target]));
