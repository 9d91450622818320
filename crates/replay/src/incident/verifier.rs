//! Reading an incident file: its lines are held to what its manifest says of them.

use sha2::{Digest, Sha256};

use super::{
    IncidentError, Manifest, MessageSection, SectionContent,
    objects::{self, Object, Objects},
    to_hex,
};

/// Holds the lines of a file to what its manifest says.
#[derive(Debug)]
pub struct Verifier<'m> {
    manifest: &'m Manifest,
    section: usize,
    sum: Sha256,
    /// Lines of the section, and of all messages.
    lines: u64,
    found: u64,
    objects: ObjectVerifier<'m>,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifiedLine {
    Message,
    Object(Object),
}

impl<'m> Verifier<'m> {
    /// Nothing was read yet but the manifest.
    pub fn new(manifest: &'m Manifest) -> Self {
        let objects = ObjectVerifier { objects: manifest.objects.as_ref(), ..ObjectVerifier::default() };
        Self { manifest, section: 0, sum: Sha256::default(), lines: 0, found: 0, objects }
    }

    /// Returns true if the next line, if any, is an object, which may have up to [`objects::LINE`] bytes.
    pub fn is_behind_messages(&self) -> bool {
        self.objects.expected_count() > 0 && self.has_all_messages()
    }

    fn has_all_messages(&self) -> bool {
        self.section == self.manifest.sections.len() && self.found == self.manifest.messages
    }

    /// Takes in the next line, with its end.
    ///
    /// # Errors
    /// If the line ends a section with another checksum, is another object, or is behind the last line.
    pub fn verify(&mut self, line: &[u8]) -> Result<VerifiedLine, IncidentError> {
        let at = self.found + 2;
        if self.is_behind_messages() {
            return self.objects.verify(at, line).map(VerifiedLine::Object);
        }
        let longer = IncidentError::Longer { line: at, expected: self.manifest.messages, of: SectionContent::Messages };
        let section = self.manifest.sections.get(self.section).ok_or(longer)?;
        self.sum.update(line);
        (self.lines, self.found) = (self.lines + 1, self.found + 1);
        if self.lines < section.messages {
            return Ok(VerifiedLine::Message);
        }
        (self.section, self.lines) = (self.section + 1, 0);
        let MessageSection { messages, first, last, sha256 } = section;
        match to_hex(std::mem::take(&mut self.sum).finalize()) == *sha256 {
            true => Ok(VerifiedLine::Message),
            false => Err(IncidentError::Section {
                line: (at + 1).saturating_sub(*messages),
                section: self.section,
                first: *first,
                last: *last,
            }),
        }
    }

    /// The file is at its end.
    ///
    /// # Errors
    /// If lines are missing.
    pub fn finish(&self) -> Result<(), IncidentError> {
        let found = self.found;
        let expected = self.manifest.messages;
        match self.has_all_messages() {
            true => self.objects.finish(found + 1),
            false => Err(IncidentError::Truncated { line: found + 1, found, expected, of: SectionContent::Messages }),
        }
    }
}

/// Holds the objects behind the messages to what the manifest says.
#[derive(Debug, Default)]
struct ObjectVerifier<'m> {
    objects: Option<&'m Objects>,
    section: usize,
    sum: Sha256,
    lines: u64,
    found: u64,
}

impl ObjectVerifier<'_> {
    fn expected_count(&self) -> u64 {
        self.objects.map_or(0, |objects| objects.count)
    }

    /// Takes in the next line; the first of them stands at this one.
    fn verify(&mut self, first: u64, line: &[u8]) -> Result<Object, IncidentError> {
        let at = first + self.found;
        let expected = self.expected_count();
        let section = self.objects.and_then(|objects| objects.sections.get(self.section));
        let section = section.ok_or(IncidentError::Longer { line: at, expected, of: SectionContent::Objects })?;
        let object = Object::parse(line).map_err(|why| {
            let object = objects::leading_digest(line).map(str::to_owned);
            let object = object.unwrap_or_else(|| format!("{} of {expected}", self.found + 1));
            IncidentError::Object { line: at, object, why }
        })?;
        self.sum.update(line);
        (self.lines, self.found) = (self.lines + 1, self.found + 1);
        if self.lines < section.objects {
            return Ok(object);
        }
        (self.section, self.lines) = (self.section + 1, 0);
        match to_hex(std::mem::take(&mut self.sum).finalize()) == section.sha256 {
            true => Ok(object),
            false => {
                Err(IncidentError::Objects { line: (at + 1).saturating_sub(section.objects), section: self.section })
            }
        }
    }

    /// The file is at its end; the line before the first of them is this.
    fn finish(&self, before: u64) -> Result<(), IncidentError> {
        let found = self.found;
        let expected = self.expected_count();
        let has_all = self.section == self.objects.map_or(0, |objects| objects.sections.len()) && found == expected;
        match has_all {
            true => Ok(()),
            false => {
                Err(IncidentError::Truncated { line: before + found, found, expected, of: SectionContent::Objects })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_events::media;
    use kairo_proto::v1::Part;

    use super::{
        super::{IncidentWriter, MessageSelection, objects::ObjectWriter},
        *,
    };
    use crate::{
        incident::objects::{LeftOutObjects, ObjectError, Reason},
        testing::{TestAgent, image, name, text_completion},
    };

    const IMAGES: [&[u8]; 2] = [b"\x89PNG\r\n\x1a\none", b"\x89PNG\r\n\x1a\ntwo"];

    /// The lines of a file, the manifest first, of an agent that was shown both images, one of them twice.
    fn file() -> Vec<Vec<u8>> {
        let mut agent = TestAgent::new("cook");
        let [one, two] = IMAGES.map(image);
        agent.hears_parts("", "look", vec![one.clone(), two]);
        agent.decide(&[text_completion("I see.")]);
        agent.hears_parts("", "and again", vec![one, Part { digest: "../keys".into(), ..Part::default() }]);
        let choosing = MessageSelection::new(name("cook"), None);
        let mut writing = IncidentWriter::new(&choosing, None);
        let messages = agent.messages();
        let mut lines: Vec<String> = messages.iter().filter_map(|message| writing.write(message).unwrap()).collect();
        let (manifest, named) = writing.finish("1").unwrap();
        assert_eq!(named.iter().map(|part| part.digest.as_str()).collect::<Vec<_>>(), IMAGES.map(media::digest));
        assert!(manifest.to_line().contains("\"format\":1,") && !manifest.to_line().contains("objects"));
        let mut adding = ObjectWriter::default();
        lines.extend(named.iter().zip(IMAGES).map(|(part, bytes)| adding.write(part, bytes)));
        lines.insert(0, manifest.with_objects(adding.finish()).to_line());
        lines.into_iter().map(String::into_bytes).collect()
    }

    /// The objects of a file, or what is wrong with it.
    fn read(lines: &[Vec<u8>]) -> Result<Vec<Object>, IncidentError> {
        let manifest = Manifest::parse(&lines[0])?;
        let mut verifying = Verifier::new(&manifest);
        let mut objects = Vec::new();
        for line in &lines[1..] {
            let is_object = verifying.is_behind_messages();
            match verifying.verify(line)? {
                VerifiedLine::Object(object) => objects.push(object),
                VerifiedLine::Message => assert!(!is_object),
            }
        }
        verifying.finish().map(|()| objects)
    }

    #[test]
    fn objects_are_read_as_they_were_written_each_once() {
        let lines = file();
        let objects = read(&lines).unwrap();
        assert_eq!(objects.iter().map(|it| it.bytes.as_slice()).collect::<Vec<_>>(), IMAGES);
        let manifest = Manifest::parse(&lines[0]).unwrap();
        let told = manifest.objects.unwrap();
        assert_eq!((manifest.format, told.count, told.bytes, told.missing), (2, 2, 22, 0));
    }

    #[test]
    fn a_file_that_lacks_them_has_the_first_format_and_says_why() {
        let mut lines = file();
        let manifest = Manifest::parse(&lines[0]).unwrap();
        let messages = lines.len() - 2;
        let mut adding = ObjectWriter::default();
        adding.record_missing(&image(IMAGES[0]));
        for objects in [adding.finish(), Objects::left_out(2, Reason::Redacted)] {
            lines.truncate(messages);
            lines[0] = manifest.clone().with_objects(objects.clone()).to_line().into_bytes();
            assert_eq!(read(&lines), Ok(Vec::new()));
            let told = Manifest::parse(&lines[0]).unwrap();
            assert_eq!((told.format, told.objects), (1, Some(objects)));
            lines.push(b"{}\n".to_vec());
            assert!(matches!(read(&lines), Err(IncidentError::Longer { of: SectionContent::Messages, .. })));
        }
        let redacted = String::from_utf8(lines.swap_remove(0)).unwrap();
        assert!(redacted.contains("\"left_out\":{\"count\":2,\"because\":\"redacted\"}"), "{redacted}");
        let left_out = LeftOutObjects { count: 2, because: Reason::Redacted };
        assert_eq!(Manifest::parse(redacted.as_bytes()).unwrap().objects.unwrap().left_out, Some(left_out));
    }

    #[test]
    fn what_is_cut_off_is_told_with_its_place_wherever_that_is() {
        let lines = file();
        let all = lines.len();
        for at in 0..all {
            let before = &lines[..at];
            let line = &lines[at];
            for length in [0, 1, 100, line.len() - 1] {
                // Of a line of which nothing is left, there is none.
                let rest = (length > 0).then(|| line[..length].to_vec());
                let cut: Vec<Vec<u8>> = before.iter().cloned().chain(rest).collect();
                if cut.is_empty() {
                    continue;
                }
                let wrong = read(&cut).unwrap_err();
                let place = match (&wrong, at == 0, at < all - 2, length) {
                    (IncidentError::Manifest(_), true, ..) => continue,
                    // The last message ends its section.
                    (IncidentError::Section { line: 2, .. }, _, true, _) if at == all - 3 => continue,
                    (IncidentError::Truncated { line, of: SectionContent::Messages, .. }, _, true, _) => *line,
                    (IncidentError::Truncated { line, of: SectionContent::Objects, .. }, _, false, 0) => *line,
                    (IncidentError::Object { line, object, why: ObjectError::CutOff }, _, false, 1..) => {
                        let expected = media::digest(IMAGES[at + 2 - all]);
                        assert!(*object == expected || length == 1 && object.ends_with(" of 2"), "{object}");
                        *line
                    }
                    _ => panic!("line {at} cut off behind {length} bytes: {wrong}"),
                };
                let left = if length == 0 { at } else { at + 1 };
                assert_eq!(place, left as u64, "{wrong}");
            }
        }
    }

    #[test]
    fn what_is_edited_or_added_is_told_with_its_place() {
        let lines = file();
        let digest = media::digest(IMAGES[1]);
        let second = lines.len();
        let changed = |at: usize, from: &str, to: &str| {
            let mut lines = lines.clone();
            lines[at] = String::from_utf8(lines[at].clone()).unwrap().replacen(from, to, 1).into_bytes();
            assert_ne!(lines[at], file()[at]);
            read(&lines).unwrap_err().to_string()
        };
        let place = format!("line {second}: object {digest}: ");
        let wrong = changed(second - 1, "base64\":\"iVBO", "base64\":\"iVBA");
        assert_eq!(wrong, format!("{place}its bytes are not those of its digest"));
        let wrong = changed(second - 1, "base64\":\"iVBO", "base64\":\"iVB!");
        assert!(wrong.starts_with(&format!("{place}expected a digest, a media type and bytes in base64")), "{wrong}");
        let other = digest.replacen(|_: char| true, "g", 1);
        assert!(changed(second - 1, &digest, &other).starts_with(&format!("line {second}: object 2 of 2: ")));
        let wrong = changed(second - 1, "image/png", "image/gif");
        assert!(wrong.contains("section 1 of the objects is not as it was exported"), "{wrong}");
        assert_eq!(changed(0, "\"bytes\":22", "\"bytes\":23"), IncidentError::Edited.to_string());

        let mut longer = lines.clone();
        longer.push(longer[second - 1].clone());
        let expected = IncidentError::Longer { line: second as u64 + 1, expected: 2, of: SectionContent::Objects };
        assert_eq!(read(&longer), Err(expected));
        let mut swapped = lines.clone();
        swapped.swap(second - 1, second - 2);
        assert!(matches!(read(&swapped), Err(IncidentError::Objects { section: 1, .. })));
    }
}
