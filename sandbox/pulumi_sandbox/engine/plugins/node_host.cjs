// Runs a Pulumi program in Node; started as a script in the program's folder, as language_host.py is for Python.
//
// It reads from standard input where the engine is and what the configuration is, so no secret stands in the
// process' arguments or initial environment, and becomes the SDK's own run script, which Pulumi's language host
// starts: @pulumi/pulumi/cmd/run.

const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const task = JSON.parse(fs.readFileSync(0, "utf8"));
const run = createRequire(path.join(task.program, "package.json")).resolve("@pulumi/pulumi/cmd/run");
Object.assign(process.env, task.environment);
process.argv = [
    process.argv[0],
    run,
    ...["--monitor", task.monitor, "--engine", task.monitor],
    ...["--organization", task.organization, "--project", task.project, "--stack", task.stack],
    ...["--root-directory", task.root, "--pwd", task.program, "--parallel", String(task.parallel)],
    ...(task.preview ? ["--dry-run"] : []),
    ".",
];
require(run);
