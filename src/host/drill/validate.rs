//! How the fields of a drill file are read, so that each mistake gets its place.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{
    self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor,
    value::MapAccessDeserializer,
};

use super::values::{Length, Signal, Text, parsed};

/// Reads a mapping as `F` and checks it; for the same reason as [`parsed`](super::values::parsed).
pub(super) fn checked<'de, D, F, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de>,
    T: TryFrom<F, Error = String>,
{
    struct Checked<F, T>(PhantomData<(F, T)>);
    impl<'de, F: Deserialize<'de>, T: TryFrom<F, Error = String>> Visitor<'de> for Checked<F, T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let fields = F::deserialize(MapAccessDeserializer::new(map))?;
            T::try_from(fields).map_err(de::Error::custom)
        }
    }
    deserializer.deserialize_map(Checked(PhantomData))
}

pub(super) fn request_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let parse = |text: &str| match text.parse() {
        Ok(bytes @ 0..=120_000) => Ok(bytes),
        _ => Err(format!("{text} is not a number of bytes up to 120000")),
    };
    parsed("a number of bytes", parse, from)
}

pub(super) fn exit_code<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let parse = |text: &str| text.parse().map_err(|_| format!("{text} is not 0 to 255"));
    parsed("an exit code", parse, from)
}

/// Signals that a handler can be set for.
pub(super) fn ignorable<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Signal>, D::Error> {
    struct Ignorable(Signal);
    impl<'de> Deserialize<'de> for Ignorable {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let parse = |text: &str| {
                let signal = Signal::try_from(text.to_owned())?;
                match signal.0.as_str() {
                    // By no process, and by no handler of ours, after which a fault would recur.
                    "SIGKILL" | "SIGSTOP" | "SIGFPE" | "SIGILL" | "SIGSEGV" => {
                        Err(format!("{} cannot be ignored", signal.0))
                    }
                    _ => Ok(Self(signal)),
                }
            };
            parsed("the name of a signal", parse, from)
        }
    }
    let signals = Vec::<Ignorable>::deserialize(from)?;
    Ok(signals.into_iter().map(|signal| signal.0).collect())
}

/// Words for a command line, which hold no NUL.
pub(super) fn options<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<Word>::deserialize(from)?;
    Ok(words.into_iter().map(|word| word.0).collect())
}

/// Variables, with names that the system can hold.
pub(super) fn environment<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<Name, Word>::deserialize(from)?;
    Ok(variables.into_iter().map(|(name, value)| (name.0, value.0)).collect())
}

struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| {
            let good = !text.contains('\0');
            good.then(|| Self(text.to_owned())).ok_or("a NUL goes with no process".to_owned())
        };
        parsed("text", parse, deserializer)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| {
            let good = !text.is_empty() && !text.contains(['=', '\0']);
            good.then(|| Self(text.to_owned())).ok_or(format!("{text:?} is no name of a variable"))
        };
        parsed("the name of a variable", parse, deserializer)
    }
}

/// The line and column of a field of the whole file, the `nth` one of this name. The reader tells
/// places in mistakes only; so a mistake is made of that key.
pub(super) fn key(text: &str, field: &str, nth: usize) -> Option<(usize, usize)> {
    struct Keys<'a> {
        field: &'a str,
        nth: usize,
    }
    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a mapping")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while map.next_key_seed(&mut self)?.is_some() {
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    impl<'de> DeserializeSeed<'de> for &mut Keys<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            let is_it = |text: &str| {
                self.nth -= usize::from(text == self.field);
                if self.nth == 0 { Err(String::new()) } else { Ok(()) }
            };
            parsed("a key", is_it, deserializer)
        }
    }
    let reader = serde_yaml::Deserializer::from_str(text);
    let mistake = reader.deserialize_map(Keys { field, nth }).err()?;
    mistake.location().map(|at| (at.line(), at.column()))
}

/// Text that is expected; a null is the word, as in a report, not the lack of an expectation.
pub(super) fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Text>, D::Error> {
    Text::deserialize(from).map(Some)
}

/// A number, or a word that stands for no bound.
fn number_or<'de, D: Deserializer<'de>>(
    word: &'static str,
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    struct NumberOr(&'static str);
    impl Visitor<'_> for NumberOr {
        type Value = Option<u64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "a number, or {}", self.0)
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<u64>, E> {
            Ok(Some(number))
        }

        fn visit_str<E: de::Error>(self, word: &str) -> Result<Option<u64>, E> {
            if word == self.0 {
                return Ok(None);
            }
            Err(E::invalid_value(de::Unexpected::Str(word), &self))
        }
    }
    deserializer.deserialize_any(NumberOr(word))
}

pub(super) fn all_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    number_or("all", from)
}

pub(super) fn forever_or_number<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    number_or("forever", from)
}

pub(super) fn forever_or_length<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Length>, D::Error> {
    let parse = |text: &str| match text {
        "forever" => Ok(None),
        _ => Length::try_from(text.to_owned()).map(Some),
    };
    parsed("a length of time, such as 500ms or 2s, or forever", parse, from)
}
