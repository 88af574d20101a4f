//! Completions and man pages, generated from the command lines (a test does it) and compiled in.

use include_dir::{Dir, include_dir};

/// The shells that there are completions for.
pub const SHELLS: [&str; 4] = ["bash", "fish", "powershell", "zsh"];

/// The programs that there are completions for.
pub const PROGRAMS: [&str; 2] = ["satyrn-host", "satyrn-engine"];

/// The man pages: each program, and each of its commands.
pub const PAGES: [&str; 12] = [
    "satyrn-engine",
    "satyrn-engine-check",
    "satyrn-engine-protocol",
    "satyrn-host",
    "satyrn-host-completions",
    "satyrn-host-conform",
    "satyrn-host-doctor",
    "satyrn-host-drill",
    "satyrn-host-implement",
    "satyrn-host-man",
    "satyrn-host-protocol",
    "satyrn-host-schema",
];

static COMPLETIONS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/completions");

static MAN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/man");

/// A program's completions for a shell.
#[must_use]
pub fn completions(shell: &str, program: &str) -> Option<&'static str> {
    // As each shell expects its files to be named.
    let file = match shell {
        "bash" => format!("{program}.bash"),
        "fish" => format!("{program}.fish"),
        "powershell" => format!("_{program}.ps1"),
        "zsh" => format!("_{program}"),
        _ => return None,
    };
    COMPLETIONS.get_file(file)?.contents_utf8()
}

/// A man page by its name, without the section.
#[must_use]
pub fn man(page: &str) -> Option<&'static str> {
    MAN.get_file(format!("{page}.1"))?.contents_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_text_and_every_file_has_a_name() {
        for program in PROGRAMS {
            for shell in SHELLS {
                assert!(completions(shell, program).is_some_and(|text| text.contains(program)));
            }
        }
        for page in PAGES {
            let text = man(page).unwrap_or_else(|| panic!("no page {page}"));
            assert!(text.contains(&format!(".TH {page} 1")), "{text}");
        }
        assert_eq!(COMPLETIONS.files().count(), PROGRAMS.len() * SHELLS.len());
        assert_eq!(MAN.files().count(), PAGES.len());
        assert_eq!((completions("sh", "satyrn-host"), man("x")), (None, None));
    }
}
