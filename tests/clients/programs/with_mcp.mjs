// The TypeScript client of the Model Context Protocol, over streamable HTTP.
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {BASE, KEY, UPLOADED, run, sizeAndDigest} from './steps.mjs';

const client = new Client({name: 'c', version: '1'});
const requestInit = {headers: {Authorization: `Bearer ${KEY}`}};
await client.connect(new StreamableHTTPClientTransport(new URL(`${BASE}/mcp`), {requestInit}));

await run({
  call: async () => (await client.callTool({name: 'say', arguments: {}})).content[0].text,
  stream: async () => {
    const words = [];
    const onprogress = ({message}) => words.push(message);
    await client.callTool({name: 'count', arguments: {}}, undefined, {onprogress});
    return words;
  },
  pages: async () => {
    const found = [];
    let cursor;
    do {
      const listed = await client.listTools(cursor ? {cursor} : {});
      found.push(...listed.tools.map((tool) => tool.name));
      cursor = listed.nextCursor;
    } while (cursor);
    return found;
  },
  download: async () => {
    const {contents} = await client.readResource({uri: 'file:///file'});
    return sizeAndDigest(Buffer.from(contents[0].blob, 'base64'));
  },
  upload: async () => {
    const sent = {name: 'put', arguments: {content: UPLOADED.toString('base64')}};
    const [size, digest] = (await client.callTool(sent)).content[0].text.split(' ');
    return [Number(size), digest];
  },
});
await client.close();
