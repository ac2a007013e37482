//! The sample sessions that come with the program.

use std::{fs, io};

use crate::unfinished::TemporaryFolder;
use include_dir::{Dir, include_dir};

static SAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/samples");

/// Questions about them; `samples/README.md` lists the answers.
pub(crate) const QUESTIONS: [&str; 3] = [
    "why were customers charged twice",
    "how do we keep two workers from taking the same row",
    "is the flaky checkout test a bug in the shop",
];

/// Their owner.
pub(crate) const OWNER: &str = "dana";
/// The machine where they were recorded.
pub(crate) const HOST: &str = "samples";

/// Writes the samples to a temporary folder, which then contains `projects/`.
pub(crate) fn unpack() -> io::Result<TemporaryFolder> {
    let folder = TemporaryFolder::create()?;
    write(&SAMPLES, folder.path())?;
    Ok(folder)
}

fn write(dir: &Dir<'_>, root: &std::path::Path) -> io::Result<()> {
    for file in dir.files() {
        let path = root.join(file.path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, file.contents())?;
    }
    dir.dirs().try_for_each(|dir| write(dir, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_have_sessions_of_three_projects() {
        let folder = unpack().unwrap();
        let projects = fs::read_dir(folder.path().join("projects")).unwrap().count();
        assert_eq!(projects, 3);
    }

    #[test]
    fn the_questions_are_in_the_readme() {
        let readme = SAMPLES.get_file("README.md").unwrap().contents_utf8().unwrap();
        for question in QUESTIONS {
            assert!(!question.is_empty() && readme.contains(question), "{question:?}");
        }
    }
}
