#!/usr/bin/env node
"use strict";
// Starts the program of this platform, which is in a package of its own among the optional
// dependencies: npm installs the one whose "os" and "cpu" fit, and nothing is downloaded or
// run when the package is installed.
const fs = require("fs");
const os = require("os");
const tty = require("tty");
const { spawn } = require("child_process");
const { version, optionalDependencies } = require("../package.json");

function fail(message) {
  process.stderr.write(`toolcell: ${message}\n`);
  process.exit(1);
}

function findProgram() {
  const name = `@toolcell/${process.platform}-${process.arch}`;
  if (!(name in optionalDependencies)) {
    const known = Object.keys(optionalDependencies).map((n) => n.replace("@toolcell/linux-", "")).sort().join(" and ");
    fail(
      `this is ${process.platform} on ${process.arch}, and toolcell runs on Linux (${known})` +
        (process.platform === "linux" ? "" : "\nhint: on Windows use it within WSL 2, elsewhere in a Linux virtual machine")
    );
  }
  let program;
  try {
    program = require.resolve(`${name}/bin/toolcell`);
    fs.accessSync(program, fs.constants.X_OK);
  } catch (error) {
    if (program) fail(`${program} cannot be run: ${error.message}`);
    fail(
      `the package ${name} is missing, in which the program is; npm leaves it out with --omit=optional\n` +
        `hint: npm install -g --include=optional toolcell@${version}, or with npx: npx --include=optional toolcell@${version}`
    );
  }
  return program;
}

// run is for Node.js before 22.15: the program is a child, and this process stands for it.
function run(program, args) {
  // A terminal sends these to the whole group: passed on, the program would get them twice,
  // and a second Ctrl-C has a meaning of its own.
  const fromTerminal = tty.isatty(0) ? ["SIGINT", "SIGQUIT"] : [];
  const signals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGWINCH"];
  let child;
  // Before the program starts: a signal in between would end this process alone.
  for (const signal of signals) {
    process.on(signal, () => {
      if (!fromTerminal.includes(signal)) child.kill(signal);
    });
  }
  child = spawn(program, args, { stdio: "inherit" });
  child.on("error", (error) => fail(`starting ${program}: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const s of signals) process.removeAllListeners(s);
    // The shell of a signal that Node.js ignores sees its number at least.
    setTimeout(() => process.exit(128 + os.constants.signals[signal]), 100);
    process.kill(process.pid, signal);
  });
}

const program = findProgram();
const args = process.argv.slice(2);
if (process.execve) {
  // Before Node.js 24.10 the program would have an empty environment without the last one.
  process.execve(program, [program, ...args], process.env);
} else {
  run(program, args);
}
