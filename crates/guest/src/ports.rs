//! Connections to ports on the sandbox's own loopback, which exists even when the network is off.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use cofferdam_protocol::{Kind, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::channel::{Channel, Inbound};
use crate::fd::READ_SIZE;
use crate::outbox::Gone;
use crate::requests::Failure;

/// How long a listener with a full queue may take.
const CONNECT: Duration = Duration::from_secs(10);

pub(crate) async fn connect(port: u16, channel: &Channel) -> Result<Reply, Failure> {
    let Some(stream) = open(port).await else {
        channel.reply(&Reply::Connected(false)).await?;
        return Ok(Reply::Done);
    };
    let _ = stream.set_nodelay(true);
    channel.reply(&Reply::Connected(true)).await?;
    let (reader, writer) = stream.into_split();
    let (down, up) = tokio::join!(send_down(reader, channel), send_up(writer, channel));
    down?;
    up?;
    Ok(Reply::Done)
}

async fn open(port: u16) -> Option<TcpStream> {
    for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))] {
        if let Ok(Ok(stream)) = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            return Some(stream);
        }
    }
    None
}

async fn send_down(mut reader: OwnedReadHalf, channel: &Channel) -> Result<(), Gone> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_SIZE);
        match reader.read_buf(&mut (&mut buffer).limit(READ_SIZE)).await {
            Ok(0) | Err(_) => return channel.end().await,
            Ok(_) => channel.send(Kind::Data, buffer.split().freeze()).await?,
        }
    }
}

/// A server that reads no more may still write: what the host sends meanwhile is read and dropped, so the host never waits
/// for credit.
async fn send_up(mut writer: OwnedWriteHalf, channel: &Channel) -> Result<(), Gone> {
    loop {
        match channel.recv().await? {
            Inbound::Data(bytes) => {
                let _ = writer.write_all(&bytes).await;
            }
            Inbound::End => {
                let _ = writer.shutdown().await;
                return Ok(());
            }
        }
    }
}
