// A client of the official TypeScript SDK: it calls run_python with each line of its input.
//
//   asked.mjs ERA CHOICE COMMAND…
//
// ERA is "v1" for the first SDK, "legacy" for the second as it is by default, or a version of the
// protocol for the second. CHOICE is what its user answers to each form, or "none" if it has no
// forms. PACKAGES is the folder with the SDKs.
import { createInterface } from "node:readline";

const [era, choice, command, ...args] = process.argv.slice(2);
const sdk = `${process.env.PACKAGES}/@modelcontextprotocol`;
const first = era === "v1";
const { Client } = await import(first ? `${sdk}/sdk/dist/esm/client/index.js` : `${sdk}/client/dist/index.mjs`);
const { StdioClientTransport } = await import(first ? `${sdk}/sdk/dist/esm/client/stdio.js` : `${sdk}/client/dist/stdio.mjs`);

const options = { capabilities: choice === "none" ? {} : { elicitation: { form: {} } } };
if (!first && era !== "legacy") options.versionNegotiation = { mode: { pin: era } };
const client = new Client({ name: "asked", version: "1" }, options);

const forms = [];
if (choice !== "none") {
  const method = first ? (await import(`${sdk}/sdk/dist/esm/types.js`)).ElicitRequestSchema : "elicitation/create";
  client.setRequestHandler(method, async (request) => {
    forms.push(request.params.message);
    return choice === "decline" ? { action: "decline" } : { action: "accept", content: { choice } };
  });
}

await client.connect(new StdioClientTransport({ command, args, env: process.env }));
for await (const line of createInterface({ input: process.stdin })) {
  const result = await client.callTool({ name: "run_python", arguments: JSON.parse(line) });
  console.log(JSON.stringify({ text: result.content[0].text, fields: result.structuredContent, forms }));
}
await client.close();
