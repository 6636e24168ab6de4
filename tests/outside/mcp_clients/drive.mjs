// One client, started with `stdio` or the address of a server: each line of input is a call, each line of output its result.
import { createInterface } from "node:readline";

const ours = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(SERVICE_|PYTHON|PATH)/.test(name)));

export async function drive(Client, Stdio, Http, options) {
  const how = process.argv[2];
  const transport =
    how === "stdio"
      ? new Stdio({ command: process.env.MCP_PYTHON, args: ["-P", "-m", "mcp_server"], env: ours() })
      : new Http(new URL(how), { requestInit: { headers: { Authorization: `Bearer ${process.env.MCP_TOKEN}` } } });
  const client = new Client({ name: "driven", version: "1.0.0" }, options);
  await client.connect(transport);
  const say = (said) => process.stdout.write(JSON.stringify(said) + "\n");
  say({ ready: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "" });
  for await (const line of createInterface({ input: process.stdin })) {
    const [method, ...given] = JSON.parse(line);
    try {
      if (method === "list") say({ result: (await client.listTools()).tools });
      else say({ result: await client.callTool({ name: given[0], arguments: given[1] }) });
    } catch (problem) {
      say({ error: problem.message });
    }
  }
  await client.close();
}
