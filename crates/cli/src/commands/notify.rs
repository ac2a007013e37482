//! Reports the state of the service to systemd, through the socket that systemd names: see sd_notify(3).

/// Reports that the service is ready. Only the first call has an effect.
pub(super) fn ready() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| send("READY=1"));
}

/// Reports that the service is stopping.
pub(super) fn stopping() {
    send("STOPPING=1");
}

/// Sends a message, if there is a socket. The service works without it.
#[cfg(target_os = "linux")]
fn send(message: &str) {
    use std::os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    };
    let environment = crate::environment::Environment::current();
    let Some(name) = environment.os_variable("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(message.as_bytes(), &address);
    }
}

#[cfg(not(target_os = "linux"))]
fn send(_: &str) {}
