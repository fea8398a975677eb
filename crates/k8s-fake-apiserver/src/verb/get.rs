//! get

use std::time::Duration;

use http::StatusCode;

use super::{Answer, Call};
use crate::query::parse_version;
use crate::represent::Form;
use crate::status::Status;

/// How long reads wait for a revision that has not been seen yet.
pub(crate) const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

pub(crate) async fn get(call: Call) -> Answer {
    let wanted = parse_version(call.query.get("resourceVersion"))
        // Not even a refusal: the real server takes it for a failure of its own.
        .map_err(|e| Status::new(500, "", e))?;
    wait_until_fresh(&call, wanted).await?;
    let found = {
        let log = call.core.log.lock();
        log.table(call.table).and_then(|t| t.objects.get(&*call.key()).cloned())
    };
    let object = found.ok_or_else(|| call.not_found())?;
    if call.form == Form::MetadataList {
        let text = "you requested PartialObjectMetadataList, but the requested object is not a list";
        return Err(Status::new(406, "NotAcceptable", format!("{text} ({})", call.kind.go_type(false))));
    }
    Ok(call.object(StatusCode::OK, &object))
}

/// Waits until the replica has seen `wanted`; 504 when that takes longer than the real server waits.
pub(crate) async fn wait_until_fresh(call: &Call, wanted: u64) -> Result<(), Status> {
    let waiting = async {
        loop {
            let notify = {
                let log = call.core.log.lock();
                if call.view.visible(&log) >= wanted {
                    return;
                }
                log.table(call.table).map(|t| t.notify.clone())
            };
            let Some(notify) = notify else { return };
            let notified = notify.notified();
            // Other kinds move the counter too and do not wake this one: look again from time to time.
            let _ = tokio::time::timeout(Duration::from_millis(50), notified).await;
        }
    };
    if tokio::time::timeout(FRESHNESS_WAIT, waiting).await.is_err() {
        let current = call.view.visible(&call.core.log.lock());
        if current < wanted {
            return Err(Status::too_large_resource_version(wanted, current));
        }
    }
    Ok(())
}
