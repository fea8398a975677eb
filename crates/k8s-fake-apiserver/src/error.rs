//! What can go wrong in setting a server up.

use std::io;
use std::path::PathBuf;

use crate::status::Status;

/// Why a server could not be set up, or its state not be changed directly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A fixture could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A fixture is not JSON.
    #[error("{} is not JSON", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where it stops being JSON.
        source: serde_json::Error,
    },
    /// An object of a fixture cannot be loaded.
    #[error("cannot load {}", path.display())]
    Fixture {
        /// The file.
        path: PathBuf,
        /// Why not; places count within the file.
        source: Box<Error>,
    },
    /// An object lacks what every object has.
    #[error("object {index} has no {field}")]
    Incomplete {
        /// Its place among the objects that were given, from 0.
        index: usize,
        /// The missing field.
        field: &'static str,
    },
    /// No kind of this `apiVersion` and `kind` is registered.
    #[error("no resource is registered for kind {kind} of {api_version}: add one with `resource`")]
    UnknownKind {
        /// The `apiVersion` of the object.
        api_version: String,
        /// The `kind` of the object.
        kind: String,
    },
    /// No resource of this name is registered.
    #[error("no resource {resource} is registered")]
    UnknownResource {
        /// The name as it was given.
        resource: String,
    },
    /// The server refused an object.
    #[error("the server refused {object}: {}", status.message())]
    Refused {
        /// `kind namespace/name`.
        object: String,
        /// The answer that a client would have got.
        status: Box<Status>,
    },
    /// The loopback port could not be opened.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kubeconfig could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server has no port: it was started without `loopback()` and `listen()` was not called.
    #[error("the server does not listen on a port")]
    NotListening,
}
