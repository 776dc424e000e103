//! Runs cases: each in a runtime of its own, with a deadline, and on real servers where it asks for them.

use std::{future::Future, pin::Pin, process::ExitCode, sync::Arc, time::Duration};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::servers::{
    Lab,
    binaries::{self, Missing},
};

/// A stuck case must not hold up the others for ever. The slowest takes a tenth of this on two busy cores.
const DEADLINE: Duration = Duration::from_mins(3);

/// One thing that must hold.
pub(crate) struct Case {
    name: String,
    body: Body,
}

enum Body {
    Plain(fn()),
    OnKubernetes(Box<dyn FnOnce(Arc<Lab>) -> Running + Send>),
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Case {
    /// A case that needs no servers.
    pub(crate) fn plain(module: &str, name: &str, body: fn()) -> Self {
        Self {
            name: full_name(module, name),
            body: Body::Plain(body),
        }
    }

    /// A case that runs on real control planes.
    pub(crate) fn on_kubernetes<F, R>(module: &str, name: &str, body: F) -> Self
    where
        F: FnOnce(Arc<Lab>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let body = Box::new(move |lab| Box::pin(body(lab)) as Running);
        Self {
            name: full_name(module, name),
            body: Body::OnKubernetes(body),
        }
    }
}

/// Lists the cases of a module: `cases!(plain: a, b; kubernetes: c, d)`.
macro_rules! cases {
    (plain: $($plain:ident),* ; kubernetes: $($real:ident),* $(,)?) => {
        /// The cases of this module.
        pub(crate) fn cases() -> Vec<$crate::harness::Case> {
            vec![
                $($crate::harness::Case::plain(module_path!(), stringify!($plain), $plain),)*
                $($crate::harness::Case::on_kubernetes(module_path!(), stringify!($real), $real),)*
            ]
        }
    };
}
pub(crate) use cases;

/// Runs the cases that the command line selects.
pub(crate) fn run(cases: Vec<Case>) -> ExitCode {
    let arguments = Arguments::from_args();
    let lab = Lab::new();
    let trials = cases.into_iter().map(|case| trial(case, &lab)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    lab.finish(conclusion.has_failed());
    conclusion.exit_code()
}

fn trial(case: Case, lab: &Arc<Lab>) -> Trial {
    match case.body {
        Body::Plain(body) => Trial::test(case.name, move || {
            body();
            Ok(())
        }),
        Body::OnKubernetes(body) => {
            let lab = Arc::clone(lab);
            Trial::ignorable_test(case.name, move || on_kubernetes(body, lab))
                .with_kind("kubernetes")
        }
    }
}

/// Real servers that cannot be had are a reason to skip a case on a laptop, and a failure in CI.
fn on_kubernetes(
    body: Box<dyn FnOnce(Arc<Lab>) -> Running + Send>,
    lab: Arc<Lab>,
) -> Result<Completion, Failed> {
    match binaries::find() {
        Ok(_) => {}
        Err(Missing::Absent(reason)) if !in_ci() => return Ok(Completion::ignored_with(reason)),
        Err(Missing::Absent(reason) | Missing::Broken(reason)) => return Err(reason.into()),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("could not start a runtime: {error}"))?;
    runtime.block_on(async {
        tokio::time::timeout(DEADLINE, body(lab))
            .await
            .map_err(|_| format!("not finished after {DEADLINE:?}"))
    })?;
    Ok(Completion::Completed)
}

fn full_name(module: &str, name: &str) -> String {
    let module = module.rsplit("::").next().unwrap_or(module);
    format!("{module}::{name}")
}

fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}
