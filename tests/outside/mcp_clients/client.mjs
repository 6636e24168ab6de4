// The protocol's own client in TypeScript of 2026, driven by lines of JSON like the one in Python.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { drive } from "./drive.mjs";

await drive(Client, StdioClientTransport, StreamableHTTPClientTransport, { versionNegotiation: { mode: "auto" } });
