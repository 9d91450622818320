//! Who has the images, audio and video that a log names: the gateway, or the incident file that the log is read from.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use kairo_agent_runtime::{Found, Parts, Stored};
use kairo_core::media;
use kairo_replay::incident::objects::Object;
use tokio::task::spawn_blocking;

use crate::{
    Error,
    agent_log::{self, Place, Source},
    client::Client,
};

/// Who has those of this log; none where nobody does, as with a file that `kairo replay --save` wrote.
///
/// # Errors
/// Where a file cannot be read, or is not as it was exported.
pub fn of(source: &Source<'_>) -> Result<Option<Arc<dyn Parts>>, Error> {
    match source {
        Source::Agents(client, ..) => Ok(Some(Arc::new(OfGateway((*client).clone())))),
        Source::File(path) => of_file(path),
    }
}

fn of_file(path: &Path) -> Result<Option<Arc<dyn Parts>>, Error> {
    let Some(opened) = agent_log::opened(path)? else { return Ok(None) };
    let is_whole = opened.manifest.objects.is_some_and(|objects| objects.left_out.is_none());
    Ok(is_whole.then(|| Arc::new(OfFile { path: path.to_owned(), places: opened.objects }) as _))
}

struct OfGateway(Client);

impl Parts for OfGateway {
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, Found> {
        async move {
            let found = self.0.stored(digest, longest).await?;
            let is_it = |(_, bytes): &(String, Vec<u8>)| media::digest(bytes) == digest;
            Ok(found.filter(is_it).map(|(media_type, bytes)| Stored { media_type, bytes }))
        }
        .boxed()
    }
}

/// They stay in the file: each is read when it is asked for.
struct OfFile {
    path: PathBuf,
    places: BTreeMap<String, Place>,
}

impl Parts for OfFile {
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, Found> {
        async move {
            let Some(place) = self.places.get(digest).copied() else { return Ok(None) };
            let path = self.path.clone();
            let line = spawn_blocking(move || read(&path, place)).await??;
            // It was as it should be when the file was opened.
            let object = Object::read(&line).map_err(|why| format!("object {digest}: {why}"))?;
            let is_it = object.digest == digest && object.bytes.len() as u64 <= longest;
            Ok(is_it.then_some(Stored { media_type: object.media_type, bytes: object.bytes }))
        }
        .boxed()
    }
}

fn read(path: &Path, place: Place) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(place.at))?;
    let mut line = vec![0; place.length];
    file.read_exact(&mut line)?;
    Ok(line)
}
