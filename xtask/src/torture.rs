//! The torture scenario at full length.

use anyhow::{Context, Result, bail};

use crate::control_plane;
use crate::run::{cargo, run};

/// `torture [--minutes N] [--objects N] [--writes N] [--seed S]`: N minutes of disturbances at random on the real control
/// plane, after one of each; N objects, N writes a second. The seed is printed; a run with it does the same, as far as
/// the machine lets it.
pub(crate) fn torture(arguments: &[&str]) -> Result<()> {
    let mut command = cargo(["test", "--release", "-p", "e2e", "--test", "it", "--"]);
    command.args(["--exact", "real_server::torture_under_steady_writes"]).env("K8S_E2E_TORTURE_MINUTES", "10");
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { bail!("{}: no value", pair.join(" ")) };
        let name = match *option {
            "--minutes" => "K8S_E2E_TORTURE_MINUTES",
            "--objects" => "K8S_E2E_TORTURE_OBJECTS",
            "--writes" => "K8S_E2E_TORTURE_WRITES",
            "--seed" => "K8S_E2E_TORTURE_SEED",
            _ => bail!("unknown option {option}"),
        };
        value.replace('_', "").parse::<f64>().with_context(|| format!("{option} {value}"))?;
        command.env(name, value);
    }
    let Some(assets) = control_plane::find_or_build()? else { bail!("there is no control plane to torture") };
    run(command.env("KUBEBUILDER_ASSETS", assets))
}
