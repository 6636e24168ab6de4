// GitHub's own client.
import {Octokit} from '@octokit/rest';
import {BASE, KEY, UPLOADED, run, sizeAndDigest} from './steps.mjs';

const quiet = {debug() {}, info() {}, warn() {}, error() {}};
const github = new Octokit({baseUrl: BASE, auth: KEY, log: quiet});
const at = {owner: 'o', repo: 'r'};

await run({
  call: async () => (await github.rest.users.getAuthenticated()).data.name,
  pages: async () => (await github.paginate(github.rest.issues.listForRepo, at)).map((issue) => String(issue.id)),
  folder: async () => (await github.rest.repos.getContent({...at, path: 'a/b'})).data.name,
  download: async () => {
    const headers = {accept: 'application/octet-stream'};
    const answer = await github.rest.repos.getReleaseAsset({...at, asset_id: 1, headers});
    return sizeAndDigest(Buffer.from(answer.data));
  },
  upload: async () => {
    const file = {...at, path: 'up.bin', message: 'm', content: UPLOADED.toString('base64')};
    const [size, digest] = (await github.rest.repos.createOrUpdateFileContents(file)).data.content.name.split(' ');
    return [Number(size), digest];
  },
  busy: async () => {
    try {
      await github.rest.issues.getLabel({...at, name: 'busy'});
    } catch (refused) {
      return [refused.status, refused.response.headers['retry-after']];
    }
  },
});
