/** A client of the environment, for programs of Node. */

import { readFile } from "node:fs/promises";

import { type Settings, Vault } from "./client.js";
import { BadArgument } from "./errors.js";

/** Make a client of SERVICE_URL and SERVICE_AGENT_TOKEN_FILE (or SERVICE_AGENT_TOKEN), as `custody run` sets them. */
export async function vaultFromEnvironment(given: Partial<Settings> = {}): Promise<Vault> {
  const { SERVICE_URL: url, SERVICE_AGENT_TOKEN_FILE: file } = process.env;
  const token = process.env.SERVICE_AGENT_TOKEN || (file && (await readFile(file, "ascii")));
  if (url && token) return new Vault({ url, token, ...given });
  throw new BadArgument(0, "no_settings", "set SERVICE_URL, and SERVICE_AGENT_TOKEN_FILE or SERVICE_AGENT_TOKEN.");
}
