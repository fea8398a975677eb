//! ConfigMaps and Secrets.

use serde_json::{Value, json};

use super::{Cluster, team, time};
use crate::base64;

impl Cluster {
    /// The `i`th ConfigMap.
    pub fn config_map(&self, i: usize) -> Value {
        let (namespace, app) = self.service_name(i);
        let mut rng = self.rng("configmap", i);
        let mut text = String::new();
        for n in 0..24 {
            text.push_str(&format!(
                "upstream_{n:02}:\n  url: http://backend-{}.{namespace}.svc:8080/v1\n  timeout: {}s\n  retries: {}\n",
                rng.below(100),
                rng.below(30) + 1,
                rng.below(5)
            ));
        }
        let metadata = json!({
            "name": format!("{app}-config"), "namespace": namespace, "uid": rng.uid(), "creationTimestamp": time(i),
            "labels": { "app.kubernetes.io/name": app, "app.kubernetes.io/managed-by": "Helm", "team": team(i) },
            "annotations": { "meta.helm.sh/release-name": app, "meta.helm.sh/release-namespace": namespace },
        });
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "server.yaml": text, "log.level": "info" },
        });
        self.finish(map, &[("helm", &["metadata", "data"], "")])
    }

    /// The `i`th Secret: random data of the wanted size under three keys.
    pub fn secret(&self, i: usize) -> Value {
        let (namespace, app) = self.service_name(i);
        let mut rng = self.rng("secret", i);
        let uid = rng.uid();
        let mut data = |bytes: usize| -> Value {
            let words = (0..bytes.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes());
            base64::encode(&words.take(bytes).collect::<Vec<u8>>()).into()
        };
        let third = self.secret_bytes / 3;
        let data =
            json!({ "ca.crt": data(third), "tls.crt": data(third), "tls.key": data(self.secret_bytes - 2 * third) });
        let metadata = json!({
            "name": format!("{app}-tls"), "namespace": namespace, "uid": uid, "creationTimestamp": time(i),
            "labels": { "app.kubernetes.io/name": app, "controller.cert-manager.io/fao": "true" },
            "annotations": { "cert-manager.io/certificate-name": format!("{app}-tls"), "cert-manager.io/common-name": format!("{app}.{namespace}.example.com") },
        });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": data });
        self.finish(secret, &[("cert-manager", &["metadata", "data", "type"], "")])
    }
}
