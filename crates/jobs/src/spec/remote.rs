//! `source.remote` of a reindex: parsed, and then refused like by an Elasticsearch whose list of allowed hosts is
//! empty.

use serde_json::{Map, Value};

use sparrow_request::error::{EngineError, Exception};
use sparrow_request::params::parse_duration;

/// The error for a remote source: what is malformed in it, or that its host is not allowed.
pub(super) fn refuse(mut remote: Map<String, Value>) -> EngineError {
    match read(&mut remote) {
        Ok(host) => EngineError::illegal_argument(format!(
            "[{host}] not whitelisted in reindex.remote.whitelist: this server reads its own indices only, use a \
             client to copy from [{host}]"
        )),
        Err(error) => error,
    }
}

/// Parses the remote source; returns its `host:port`.
fn read(remote: &mut Map<String, Value>) -> Result<String, EngineError> {
    let mut text = |name: &str| match remote.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(EngineError::illegal_argument(format!("[{name}] must be a string"))),
    };
    let (user, _password) = (text("username")?, text("password")?);
    let _ = user;
    let given = text("host")?.ok_or_else(|| {
        EngineError::illegal_argument("[host] must be specified to reindex from a remote cluster")
    })?;
    let host = authority(&given).ok_or_else(|| {
        EngineError::illegal_argument(format!(
            "[host] must be of the form [scheme]://[host]:[port](/[pathPrefix])? but was [{given}]"
        ))
    })?;
    for name in ["socket_timeout", "connect_timeout"] {
        if let Some(value) = text(name)? {
            parse_duration(name, &value).map_err(|error| {
                let cause =
                    Exception::new("number_format_exception", format!("For input string: \"{value}\""));
                EngineError::api(400, error.exception().because(cause))
            })?;
        }
    }
    match remote.shift_remove("headers") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(_) => return Err(EngineError::illegal_argument("[headers] must be an object")),
    }
    if !remote.is_empty() {
        let names: Vec<&str> = remote.keys().map(String::as_str).collect();
        return Err(EngineError::illegal_argument(format!(
            "Unsupported fields in [remote]: [{}]",
            names.join(",")
        )));
    }
    Ok(host.to_owned())
}

/// `host:port` of an address with a scheme and a port.
fn authority(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let fits = !scheme.is_empty() && !host.is_empty() && port.parse::<u16>().is_ok();
    fits.then_some(authority)
}
