//! Starts and stops a real control plane; `cargo xtask control-plane` calls it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use e2e::{Assets, ControlPlane, stop_in};

const USAGE: &str = "control-plane start DIR | stop DIR";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("control-plane: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["start", folder] => {
            let Some(assets) = Assets::find()? else { bail!("{}", e2e::HOW_TO_GET_ONE) };
            let plane = ControlPlane::start_in(&assets, Path::new(folder)).await?;
            println!("{}\nKUBECONFIG={}", plane.url(), plane.kubeconfig().display());
            plane.detach();
        }
        ["stop", folder] => stop_in(Path::new(folder))?,
        _ => bail!("usage: {USAGE}"),
    }
    Ok(())
}
