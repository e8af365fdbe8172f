// Walks through the page of `toolcell ui` as a user does, and attacks it as other pages do. What it says on a line of its own
// is done by the test: "CODE" wants a line with the code of the terminal, "RUN" a new run that asks, "OTHER" one that does not, "LONG" one that
// goes on, whose ID it wants.
"use strict";
const { chromium } = require(process.env.MODULES + "/playwright-core");
const axe = require("fs").readFileSync(process.env.MODULES + "/axe-core/axe.min.js", "utf8");
const http = require("http");

const lines = require("readline").createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function wanted(what) {
  console.log(what);
  return (await lines.next()).value;
}

function must(holds, what) {
  if (!holds) throw new Error(what);
}

async function accessible(page, where) {
  const found = await page.evaluate(async () => (await window.axe.run()).violations.map((v) => `${v.id}: ${v.nodes[0].html}`));
  must(found.length === 0, `axe at ${where}: ${found.join("\n")}`);
}

// look checks that a page is good to read: in all sizes and colors, by keyboard and with a screen reader.
async function look(page, path) {
  await page.goto(path, { waitUntil: "domcontentloaded" });
  for (const [width, colorScheme] of [[400, "light"], [1600, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await accessible(page, `${path}, ${width} pixels, ${colorScheme}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    must(wide <= width, `${path} is ${wide} pixels wide of ${width}`);
  }
  must(!(await page.evaluate(() => window.hacked)), `${path} ran what others wrote`);
}

// approve chooses what to allow and types the code of the terminal, or a wrong one.
async function approve(page, title, wrong) {
  await page.getByRole("button", { name: title + " …" }).click();
  const code = await wanted("CODE");
  await page.getByRole("textbox", { name: title }).fill(wrong || code);
  await page.getByRole("button", { name: title, exact: true }).click();
}

async function heading(page, text) {
  await page.getByRole("heading", { level: 1, name: text }).waitFor();
}

// attack tries what a page at another port of the same address, or at another address, can do.
async function attack(context, base, id) {
  const port = new URL(base).port;
  const hits = [];
  for (const address of [new URL(base).hostname, "127.0.0.1"]) {
    const server = http.createServer((request, response) => {
      response.setHeader("Content-Type", "text/html");
      response.end(`<!doctype html><form method="post" action="${base}/questions/${id}/deny"></form>`);
    });
    await new Promise((done) => server.listen(0, address, done));
    const page = await context.newPage();
    await page.goto(`http://${address}:${server.address().port}/`);
    const read = await page.evaluate(async (base) => {
      try {
        return await (await fetch(base + "/runs", { credentials: "include" })).text();
      } catch (error) {
        return "refused";
      }
    }, base);
    if (read !== "refused") hits.push(`${address} reads ${read}`);
    await Promise.all([page.waitForNavigation(), page.evaluate(() => document.forms[0].submit())]);
    const text = await page.textContent("body");
    if (!text.includes("from another page") && !text.includes("Open the page with a link")) hits.push(`${address} posts: ${text}`);
    await page.close();
    server.close();
  }
  const page = await context.newPage();
  const answer = await page.goto(`http://rebound.test:${port}/runs`);
  if (answer.status() !== 421) hits.push(`a rebound name gets ${answer.status()}`);
  await page.close();
  must(hits.length === 0, hits.join("\n"));
}

(async () => {
  const link = process.env.LINK;
  const base = new URL(link).origin;
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM, args: ["--no-sandbox", `--host-resolver-rules=MAP rebound.test ${new URL(base).hostname}`],
  });
  const context = await browser.newContext({ baseURL: base, permissions: ["clipboard-read", "clipboard-write"] });
  context.setDefaultTimeout(240_000); // the host may do much else
  await context.addInitScript(axe);
  const problems = [];
  context.on("weberror", (error) => problems.push(String(error.error())));
  const page = await context.newPage();
  page.on("dialog", (dialog) => { problems.push("dialog: " + dialog.message()); dialog.dismiss(); });
  await page.goto(link, { waitUntil: "domcontentloaded" });
  await heading(page, "1 question waits for you");
  const other = await context.newPage();
  await other.goto("/", { waitUntil: "domcontentloaded" });
  const id = await page.locator("article .meta code").first().textContent();
  must((await page.locator("article .meta").first().textContent()).includes(" of e2e"), "who asks is not said");
  must((await page.locator("article .code tr.calls").textContent()).includes("create_issue"), "the code around the call is not there");

  await look(page, "/");
  await look(page, "/runs");
  await page.getByRole("link", { name: process.env.HOSTILE }).first().click();
  await page.waitForURL(/\/runs\/\w+$/);
  const hostile = new URL(page.url()).pathname;
  await look(page, hostile);
  await page.getByRole("button", { name: "Copy the command" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  must((await page.evaluate(() => navigator.clipboard.readText())).startsWith("toolcell exec "), "the command is not copied");
  await page.getByRole("textbox", { name: "with run" }).fill(hostile.split("/").pop());
  await page.getByRole("button", { name: "Compare" }).click();
  await page.waitForURL(/\/compare/);
  await look(page, new URL(page.url()).pathname + new URL(page.url()).search);
  await page.goto("/runs?q=" + encodeURIComponent("window.hacked"), { waitUntil: "domcontentloaded" });
  must((await page.locator("tbody tr").count()) === 1, "the search finds another number of runs");
  await look(page, "/policy");
  await page.getByRole("link", { name: "a rule of this" }).first().click();
  await page.waitForURL(/\/policy\/rule/);
  await look(page, new URL(page.url()).pathname + new URL(page.url()).search);
  await page.getByRole("button", { name: "Copy the lines" }).first().click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  must((await page.evaluate(() => navigator.clipboard.readText())).includes("create_issue"), "the lines of a rule are not copied");
  await look(page, "/no-such-page");
  await look(page, "/servers?q=" + encodeURIComponent("create an issue"));
  await page.getByRole("region", { name: "Tools that fit" }).getByRole("link", { name: "github" }).first().click();
  await page.waitForURL(/\/servers\/github$/);
  await page.getByText("create_issue(").first().waitFor();
  await heading(page, "Server github");
  await page.getByRole("heading", { name: "What it wrote to stderr" }).waitFor();
  await page.locator("h1").getByText("running").waitFor(); // in the process that serves
  await look(page, new URL(page.url()).pathname);
  await look(page, "/sandbox");
  await page.getByText("RC-SANDBOX").waitFor();
  await attack(context, base, id);

  await page.goto("/", { waitUntil: "domcontentloaded" });
  await page.keyboard.press("Tab");
  must((await page.evaluate(() => document.activeElement.textContent)) === "Skip to the content", "the first key does not skip to the content");
  await approve(page, "Allow this call", "XXXX");
  await page.getByText("Wrong code: nothing was approved.").waitFor();
  await heading(page, "It was not approved");
  await accessible(page, "the page of a wrong code");
  await page.getByLabel("Reason, which the code and the model read").fill("x".repeat(600));
  await page.getByRole("button", { name: "Do not allow it", exact: true }).click();
  await heading(page, "It was not denied");
  must((await page.getByLabel("Reason, which the code and the model read").inputValue()) === "x".repeat(600), "what was typed is lost");
  await page.goto("/", { waitUntil: "domcontentloaded" });
  await heading(page, "1 question waits for you");
  await approve(page, "Allow this call");
  await heading(page, "Nothing waits for you");
  await heading(other, "Nothing waits for you"); // without being asked for anew

  await wanted("RUN");
  await heading(other, "1 question waits for you");
  await other.getByLabel("Reason, which the code and the model read").fill("use the test account");
  await wanted("OTHER");
  await other.locator("tbody tr").filter({ hasText: "print('another run')" }).waitFor(); // what was typed stays
  await other.getByRole("button", { name: "Do not allow it", exact: true }).click();
  await heading(page, "Nothing waits for you");
  await page.getByText(": use the test account").waitFor();

  await wanted("RUN");
  await heading(page, "1 question waits for you");
  await approve(page, "Allow this tool for the rest of this run");
  await heading(page, "Nothing waits for you");

  const long = await wanted("LONG");
  await look(page, "/runs/" + long);
  await page.getByText("line 3").waitFor();
  await page.getByText(" at its peak").waitFor(); // of memory
  await other.goto("/runs/" + long, { waitUntil: "domcontentloaded" });
  await page.getByRole("button", { name: "Stop the run" }).click();
  await page.locator("h1").getByText("cancelled").waitFor();
  await other.locator("h1").getByText("cancelled").waitFor(); // without being asked for anew
  must((await other.getByText("line 3").count()) === 1, "what was printed and is not on record is gone");
  await page.goto("/sandbox", { waitUntil: "domcontentloaded" });
  await page.getByRole("region", { name: "Kept ready for runs" }).locator("tbody tr").first().waitFor();
  await page.goto("/", { waitUntil: "domcontentloaded" });

  await wanted("RUN");
  await heading(page, "1 question waits for you");
  await page.getByRole("button", { name: "Do not allow it, and stop the run" }).click();
  await heading(page, "Nothing waits for you");
  must(problems.length === 0, problems.join("\n"));
  await browser.close();
  process.exit(0);
})().catch((error) => {
  console.log("FAILED " + error.stack.replaceAll("\n", "\\n"));
  process.exit(1);
});
