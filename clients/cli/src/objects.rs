//! Source of the images, audio and video that a log names: the gateway, or the incident file that holds the log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use kairo_agent_runtime::{PartLookup, PartStore, StoredPart};
use kairo_core::media;
use kairo_replay::incident::objects::Object;
use tokio::task::spawn_blocking;

use crate::{
    Error,
    agent_log::{self, LineSpan, LogSource},
    client::Client,
};

/// Returns the source of a log's media; `None` if nobody has them, as with a file that `kairo replay --save` wrote.
///
/// # Errors
/// Fails if the file cannot be read or is not as it was exported.
pub fn open(source: &LogSource<'_>) -> Result<Option<Arc<dyn PartStore>>, Error> {
    match (source, source.client()) {
        (LogSource::File(path), _) => open_file(path),
        (_, client) => Ok(client.map(|client| Arc::new(GatewayObjects(client.clone())) as _)),
    }
}

fn open_file(path: &Path) -> Result<Option<Arc<dyn PartStore>>, Error> {
    let Some(opened) = agent_log::verify_incident(path)? else { return Ok(None) };
    let is_whole = opened.manifest.objects.is_some_and(|objects| objects.left_out.is_none());
    Ok(is_whole.then(|| Arc::new(IncidentObjects { path: path.to_owned(), places: opened.objects }) as _))
}

struct GatewayObjects(Client);

impl PartStore for GatewayObjects {
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, PartLookup> {
        async move {
            let found = self.0.fetch_object(digest, longest).await?;
            let is_it = |(_, bytes): &(String, Vec<u8>)| media::digest(bytes) == digest;
            Ok(found.filter(is_it).map(|(media_type, bytes)| StoredPart { media_type, bytes }))
        }
        .boxed()
    }
}

/// They stay in the file: each is read when it is asked for.
struct IncidentObjects {
    path: PathBuf,
    places: BTreeMap<String, LineSpan>,
}

impl PartStore for IncidentObjects {
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, PartLookup> {
        async move {
            let Some(place) = self.places.get(digest).copied() else { return Ok(None) };
            let path = self.path.clone();
            let line = spawn_blocking(move || read(&path, place)).await??;
            // It was as it should be when the file was opened.
            let object = Object::parse(&line).map_err(|why| format!("object {digest}: {why}"))?;
            let is_it = object.digest == digest && object.bytes.len() as u64 <= longest;
            Ok(is_it.then_some(StoredPart { media_type: object.media_type, bytes: object.bytes }))
        }
        .boxed()
    }
}

fn read(path: &Path, place: LineSpan) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(place.at))?;
    let mut line = vec![0; place.length];
    file.read_exact(&mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::Part;
    use kairo_replay::{
        incident::{
            IncidentWriter, MessageSelection,
            objects::{ObjectWriter, Objects, Reason},
        },
        testing::{TestAgent, name},
    };

    use super::*;

    const IMAGES: [&[u8]; 2] = [b"\x89PNG\r\n\x1a\none", b"\x89PNG\r\n\x1a\ntwo"];

    fn part(bytes: &[u8]) -> Part {
        let media_type = "image/png".to_owned();
        let digest = media::digest(bytes);
        Part { media_type, digest, size: bytes.len() as u64, ..Part::default() }
    }

    /// A file of an agent that was shown both images, with these objects and their lines.
    fn write(path: &Path, objects: Objects, lines: &[String]) {
        let mut agent = TestAgent::new("cook");
        agent.hears_parts("", "look", IMAGES.map(part).into());
        let choosing = MessageSelection::new(name("cook"), None);
        let mut writing = IncidentWriter::new(&choosing, None);
        let messages: Vec<String> = agent.messages().iter().filter_map(|it| writing.write(it).unwrap()).collect();
        let manifest = writing.finish("1").unwrap().0.with_objects(objects);
        std::fs::write(path, manifest.to_line() + &messages.concat() + &lines.concat()).unwrap();
    }

    #[tokio::test]
    async fn each_is_read_from_its_place_in_the_file_when_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cook.kairo");
        let mut adding = ObjectWriter::default();
        let lines = IMAGES.map(|bytes| adding.write(&part(bytes), bytes));
        write(&path, adding.finish(), &lines);
        let parts = open(&LogSource::File(&path)).unwrap().unwrap();
        for bytes in IMAGES {
            let expected = StoredPart { media_type: "image/png".to_owned(), bytes: bytes.to_vec() };
            assert_eq!(parts.get(&media::digest(bytes), 11).await.unwrap(), Some(expected));
            assert_eq!(parts.get(&media::digest(bytes), 10).await.unwrap(), None, "it is larger than that");
        }
        assert_eq!(parts.get(&media::digest(b"other"), 11).await.unwrap(), None);
        // What was changed since it was opened is an error, not an image.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("d28=", "d2g=")).unwrap();
        let error = parts.get(&media::digest(IMAGES[1]), 11).await.unwrap_err().to_string();
        assert_eq!(error, format!("object {}: its bytes are not those of its digest", media::digest(IMAGES[1])));
        assert!(parts.get(&media::digest(IMAGES[0]), 11).await.unwrap().is_some());
        let Err(Error::Damaged(why)) = open(&LogSource::File(&path)) else { panic!("it is opened") };
        assert!(why.contains(&error), "{why}");
    }

    #[tokio::test]
    async fn a_file_from_which_they_were_left_out_has_none_and_one_that_misses_them_says_so_of_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cook.kairo");
        write(&path, Objects::left_out(2, Reason::Unwanted), &[]);
        assert!(open(&LogSource::File(&path)).unwrap().is_none());
        let mut adding = ObjectWriter::default();
        IMAGES.iter().for_each(|bytes| adding.record_missing(&part(bytes)));
        write(&path, adding.finish(), &[]);
        let parts = open(&LogSource::File(&path)).unwrap().unwrap();
        assert_eq!(parts.get(&media::digest(IMAGES[0]), 11).await.unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert!(open(&LogSource::File(&path)).unwrap().is_none(), "no incident file");
    }
}
