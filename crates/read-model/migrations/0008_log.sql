-- From which log a generation was made. A log that was restored from a backup is another one, also where it goes as far: what
-- was made from the one before is thrown away. NULL where a version wrote it that did not know that yet.
ALTER TABLE generations ADD COLUMN log uuid;
