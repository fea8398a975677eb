//! What no compiler checks: arrows between the crates, manifests, features, texts.

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::msrv;

mod arrows;
mod contract;
mod manifests;
mod texts;

/// Prints everything that is wrong, not only the first.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let mut wrong = arrows::check(&metadata);
    wrong.extend(manifests::check(&metadata)?);
    wrong.extend(msrv::dependencies(&metadata)?);
    wrong.extend(texts::check()?);
    wrong.extend(contract::check()?);
    for finding in &wrong {
        eprintln!("{finding}");
    }
    match wrong.len() {
        0 => Ok(()),
        n => bail!("{n} findings"),
    }
}
