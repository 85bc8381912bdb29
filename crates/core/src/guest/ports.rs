//! A port of the sandbox on the host's own loopback: every connection is a channel, with the network off as well as on.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use cofferdam_protocol::{Reply, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, DataSender, unexpected};
use super::connection::Guest;
use super::link::{Event, LinkEnd};
use crate::{Error, Result};

/// Bytes per read: one frame of data.
const READ_SIZE: usize = 64 * 1024;

/// A port of the sandbox that the host can connect to, until it is closed or the sandbox is.
pub struct PortForward {
    address: SocketAddr,
    over: CancellationToken,
}

impl PortForward {
    /// On the host's loopback.
    pub fn host_port(&self) -> u16 {
        self.address.port()
    }

    /// Ends it, with all its connections.
    pub fn close(&self) {
        self.over.cancel();
    }
}

impl Guest {
    /// Listens on the host's loopback, at `host_port` or any free one, for connections to `port` in the sandbox.
    pub async fn forward(self: &Arc<Self>, port: u16, host_port: Option<u16>) -> Result<PortForward> {
        // Fail now if the sandbox is gone, not at the first connection.
        self.link().await?;
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, host_port.unwrap_or(0)));
        let taken = |error: io::Error| {
            let message = format!("cannot listen on {wanted}: {error}; leave hostPort out to have a free one");
            Error::invalid(message).with("hostPort", wanted.port())
        };
        let listener = TcpListener::bind(wanted).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let over = self.lifetime().child_token();
        tokio::spawn(accept_all(Arc::clone(self), listener, port, over.clone()));
        Ok(PortForward { address, over })
    }

    /// Whether a program listens on a port of the sandbox.
    pub(crate) async fn probe(&self, port: u16) -> Result<bool> {
        match self.connect(port).await? {
            Ok(Some(_)) => Ok(true),
            Ok(None) => Ok(false),
            Err(end) => Err(self.explain(end).await),
        }
    }

    async fn connect(&self, port: u16) -> Result<Result<Option<Channel>, LinkEnd>> {
        let mut channel = match self.link().await?.request(&Request::Connect { port }, 2) {
            Ok(channel) => channel?,
            Err(end) => return Ok(Err(end)),
        };
        Ok(match channel.reply().await {
            Ok(Ok(Reply::Connected(true))) => Ok(Some(channel)),
            Ok(Ok(Reply::Connected(false))) => Ok(None),
            Ok(Ok(_)) => return Err(unexpected()),
            Ok(Err(error)) => return Err(error),
            Err(end) => Err(end),
        })
    }
}

async fn accept_all(guest: Arc<Guest>, listener: TcpListener, port: u16, over: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Their tasks end with the set.
            () = over.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let guest = Arc::clone(&guest);
                    connections.spawn(async move { serve(&guest, port, stream).await });
                }
                // Most likely out of file descriptors: wait until some are closed.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, from its first byte to its last.
async fn serve(guest: &Guest, port: u16, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(Some(channel))) = guest.connect(port).await else {
        // No listener, or the sandbox is gone: refuse the client, as a direct connection would.
        let _ = stream.set_zero_linger();
        return;
    };
    let (reader, writer) = stream.into_split();
    let sender = channel.sender();
    tokio::select! {
        () = send_down(channel, writer) => {}
        () = send_up(reader, sender) => {}
    }
}

/// Returns when the client is gone. A client that only closed its sending half still gets data.
async fn send_up(mut reader: OwnedReadHalf, sender: DataSender) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_SIZE);
        match reader.read_buf(&mut (&mut buffer).limit(READ_SIZE)).await {
            Ok(0) => {
                sender.end();
                return std::future::pending().await;
            }
            Ok(_) if sender.send(buffer.split().freeze()).await.is_ok() => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Returns when both directions have ended, or either side is gone.
async fn send_down(mut channel: Channel, mut writer: OwnedWriteHalf) {
    loop {
        let written = match channel.next().await {
            Ok(Event::Data(bytes)) => writer.write_all(&bytes).await,
            Ok(Event::End) => writer.shutdown().await,
            Ok(Event::Reply(_) | Event::Output(..)) | Err(_) => return,
        };
        if written.is_err() {
            return;
        }
    }
}
