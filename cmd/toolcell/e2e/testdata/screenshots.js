// Takes pictures of the page of `toolcell ui` for the documents, into the folder that is its argument.
"use strict";
const { chromium } = require(process.env.MODULES + "/playwright-core");

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1100, height: 700 }, baseURL: new URL(process.env.LINK).origin });
  await page.goto(process.env.LINK, { waitUntil: "domcontentloaded" });
  await page.getByRole("heading", { level: 1, name: "1 question waits for you" }).waitFor();
  const take = (name) => page.screenshot({ path: `${process.argv[2]}/ui-${name}.png` });
  await take("waiting");
  await page.goto("/runs?status=error", { waitUntil: "domcontentloaded" });
  await page.locator("tbody a").first().click();
  await page.waitForURL(/\/runs\/\w+/);
  await take("run");
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
