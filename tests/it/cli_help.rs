//! What the command line says about itself.

use std::fmt::Write as _;

use snapbox::{assert_data_eq, cmd::Command, file, str};

use crate::harness::cases;

cases!(
    plain:
        help_tells_the_story,
        no_command_is_wrong_usage,
        an_unknown_command_is_wrong_usage,
        a_wrong_log_level_is_wrong_usage,
        colour_needs_a_terminal,
        every_shell_has_completions,
        every_command_has_a_man_page,
        a_man_directory_that_does_not_exist_is_a_failure,
        the_reference_in_docs_is_what_help_prints;
    kubernetes:
);

pub(crate) fn gitspoke() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .env_remove("GITSPOKE_LOG")
        .env_remove("GITSPOKE_LOG_FORMAT")
}

fn help_tells_the_story() {
    gitspoke()
        .arg("--help")
        .assert()
        .success()
        .stderr_eq("")
        .stdout_eq(str![[r#"
gitspoke runs fleets of Kubernetes clusters from a Git repository.

You push clusters/<name>/works/*.yaml. A hub turns each file into a ManifestWork in the namespace of
that cluster; an agent on each cluster applies it, keeps it applied and reports back; the answer
appears on your commit.

It speaks Open Cluster Management's API, so its agent works under an OCM hub and its hub works with
OCM's agents.

Usage: gitspoke [OPTIONS] <COMMAND>

Commands:
  agent        Apply the works of one cluster, keep them applied and report back
  install      Print what `kubectl apply -f -` needs
  completions  Print a completion script for a shell
  man          Write man pages to a directory

Options:
  -h, --help
          Print help (see a summary with '-h')

  -V, --version
          Print version

Logging:
      --log-format <FORMAT>
          How log lines are written to stderr

          Possible values:
          - text: For people
          - json: One JSON object a line, for log collectors
          
          [env: GITSPOKE_LOG_FORMAT=]
          [default: text]

      --log <LEVELS>
          What is logged: a level, or targets with levels such as `warn,gitspoke=debug`.
          
          What the Kubernetes client says of each request is left out, unless it is named, as in
          `info,kube_client=warn`, or the level is `debug` or `trace`.
          
          [env: GITSPOKE_LOG=]
          [default: info]

Examples:
  Teach a hub the objects gitspoke works with:
    gitspoke install crds | kubectl apply --server-side -f -

Exit codes: 0 done, 1 differs or not healthy, 2 wrong usage, 3 failed.

"#]]);
    gitspoke()
        .arg("--version")
        .assert()
        .success()
        .stderr_eq("")
        .stdout_eq(str![[r#"
gitspoke 0.1.0

"#]]);
}

fn no_command_is_wrong_usage() {
    gitspoke()
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
Runs fleets of Kubernetes clusters from a Git repository

Usage: gitspoke [OPTIONS] <COMMAND>

Commands:
  agent        Apply the works of one cluster, keep them applied and report back
  install      Print what `kubectl apply -f -` needs
  completions  Print a completion script for a shell
  man          Write man pages to a directory

Options:
  -h, --help     Print help (see more with '--help')
  -V, --version  Print version

Logging:
      --log-format <FORMAT>  How log lines are written to stderr [env: GITSPOKE_LOG_FORMAT=]
                             [default: text] [possible values: text, json]
      --log <LEVELS>         What is logged: a level, or targets with levels such as
                             `warn,gitspoke=debug` [env: GITSPOKE_LOG=] [default: info]

Examples:
  Teach a hub the objects gitspoke works with:
    gitspoke install crds | kubectl apply --server-side -f -

Exit codes: 0 done, 1 differs or not healthy, 2 wrong usage, 3 failed.

"#]]);
}

fn an_unknown_command_is_wrong_usage() {
    gitspoke()
        .args(["instal", "crds"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: unrecognized subcommand 'instal'

  tip: a similar subcommand exists: 'install'

Usage: gitspoke [OPTIONS] <COMMAND>

For more information, try '--help'.

"#]]);
    gitspoke()
        .args(["install", "crds", "gitsource"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: invalid value 'gitsource' for '[NAME]...'
  [possible values: manifestworks, appliedmanifestworks, gitsources]

  tip: a similar value exists: 'gitsources'

For more information, try '--help'.

"#]]);
}

fn a_wrong_log_level_is_wrong_usage() {
    let wrong = ["--log", "gitspoke=loud", "install", "crds"];
    gitspoke()
        .args(wrong)
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: invalid value 'gitspoke=loud' for '--log <LEVELS>': error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5

For more information, try '--help'.

"#]]);
}

/// A pipe gets none, whatever is asked for; with `NO_COLOR` nobody gets any.
fn colour_needs_a_terminal() {
    for environment in [("TERM", "xterm-256color"), ("NO_COLOR", "1")] {
        let output = gitspoke()
            .env(environment.0, environment.1)
            .arg("instal")
            .output()
            .unwrap();
        assert!(!output.stderr.contains(&0x1b), "{environment:?}");
    }
    let forced = gitspoke()
        .env("CLICOLOR_FORCE", "1")
        .args(["man", "/does/not/exist"])
        .output()
        .unwrap();
    assert!(
        forced.stderr.contains(&0x1b),
        "nobody can see colour at all"
    );
}

fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = gitspoke().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("crds"),
            "{shell}: {script}"
        );
    }
}

fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    gitspoke()
        .arg("man")
        .arg(directory.path())
        .assert()
        .success()
        .stdout_eq("")
        .stderr_eq("");
    for page in [
        "gitspoke.1",
        "gitspoke-install.1",
        "gitspoke-install-crds.1",
        "gitspoke-completions.1",
    ] {
        let text = std::fs::read_to_string(directory.path().join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
}

fn a_man_directory_that_does_not_exist_is_a_failure() {
    let output = gitspoke().args(["man", "/does/not/exist"]).assert();
    output.code(3).stdout_eq("").stderr_eq(str![[r#"
error: could not write man pages to /does/not/exist
  because No such file or directory (os error 2)
hint: give a directory that exists and may be written to

"#]]);
}

fn the_reference_in_docs_is_what_help_prints() {
    let mut page = "\
# The command line

Made from the commands' own help; `SNAPSHOTS=overwrite cargo test --test it cli_help` writes it anew.
"
    .to_owned();
    describe(&mut page, &[], &gitspoke::cli::definition());
    assert_data_eq!(page, file!["../../docs/cli.md"].raw());
}

fn describe(page: &mut String, path: &[&str], command: &clap::Command) {
    let output = gitspoke().args(path).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let name = [&["gitspoke"], path].concat().join(" ");
    write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end())
        .expect("writing to memory cannot fail");
    for below in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        describe(page, &[path, &[below.get_name()]].concat(), below);
    }
}
