// The protocol's own client in TypeScript of 2025, driven by lines of JSON like the one in Python.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { drive } from "./drive.mjs";

await drive(Client, StdioClientTransport, StreamableHTTPClientTransport, {});
