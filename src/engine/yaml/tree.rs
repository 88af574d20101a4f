//! From events to nodes in one arena. An alias is a node that names another: nothing is copied.

use super::parser::{Content, Event, Parser};
use super::resolve;
use super::scanner::Style;
use super::terms::{Error, MAX_DEPTH, QUOTE, Tag, short};
use std::borrow::Cow;
use std::collections::HashMap;

/// An index into the arena.
pub(in crate::engine) type NodeId = u32;

const NONE: NodeId = NodeId::MAX;

/// A scalar may stand below this many value keys (`=`): anchors can make long chains and circles.
const MAX_VALUES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Shape {
    Plain,
    Quoted,
    Block,
    Sequence,
    Mapping,
    Alias,
}

/// 28 bytes, because two bytes of text can make three nodes.
pub(super) struct Node {
    pub(super) tag: Tag,
    shape: Shape,
    /// The value stands in the pool, not in the text.
    pooled: bool,
    /// Set when the node is constructed, and when its merge keys have been followed.
    pub(super) constructed: bool,
    pub(super) flattened: bool,
    /// Byte offsets in the text.
    start: u32,
    end: u32,
    /// The next node in the same collection.
    next: NodeId,
    /// A scalar: the range of its value. A collection: its first and last child. An alias: its target.
    a: u32,
    b: u32,
}

/// A document: nodes, and the text they point into.
pub(in crate::engine) struct Document<'a> {
    text: &'a str,
    nodes: Vec<Node>,
    pool: String,
    root: Option<NodeId>,
    /// For mappings with a value key (`=`): the first one.
    value_keys: HashMap<NodeId, NodeId>,
}

/// Composes the only document of `text`. Nothing is constructed yet.
pub(super) fn compose(text: &str) -> Result<Document<'_>, Error> {
    if text.len() > 1 << 30 {
        return Err(Error::new("more than 1 GiB", 0));
    }
    // As many as there can be: two bytes of text make three nodes at most. What is not used is never
    // touched, and so takes no memory; to grow would take the old and the new room at once.
    let nodes = Vec::with_capacity(text.len() / 2 * 3 + 4);
    let mut document =
        Document { text, nodes, pool: String::new(), root: None, value_keys: HashMap::new() };
    let mut parser = Parser::new(text);
    let mut anchors: HashMap<&str, NodeId> = HashMap::new();
    // Open collections, and whether the next child of each is a key.
    let mut open: Vec<(NodeId, bool)> = Vec::new();
    let mut next = parser.start()?;
    while let Some(event) = next {
        if let Content::End = event.content {
            if let Some((id, _)) = open.pop() {
                document.nodes[id as usize].end = to_u32(event.end);
            }
        } else {
            let starts = matches!(event.content, Content::SequenceStart | Content::MappingStart);
            let (anchor, start) = (event.properties.anchor, event.start);
            let id = document.add(event, &anchors)?;
            match open.last_mut() {
                Some((parent, is_key)) => document.attach(id, *parent, is_key),
                None => document.root = Some(id),
            }
            if let Some(name) = anchor
                && anchors.insert(name, id).is_some()
            {
                return Err(Error::new(format!("a second anchor '&{}'", short(name)), start));
            }
            if starts {
                open.push((id, true));
            }
            // The root itself is no nesting.
            if open.len() > MAX_DEPTH + 1 {
                return Err(Error::new(format!("nested deeper than {MAX_DEPTH} levels"), start));
            }
        }
        next = if open.is_empty() { None } else { Some(parser.next()?) };
    }
    parser.finish()?;
    Ok(document)
}

fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl<'a> Document<'a> {
    fn add(&mut self, event: Event<'a>, anchors: &HashMap<&str, NodeId>) -> Result<NodeId, Error> {
        let mut node = Node {
            tag: Tag::Unknown,
            shape: Shape::Alias,
            pooled: false,
            constructed: false,
            flattened: false,
            start: to_u32(event.start),
            end: to_u32(event.end),
            next: NONE,
            a: NONE,
            b: NONE,
        };
        let tag = event.properties.tag;
        match event.content {
            Content::Alias(name) => {
                let target = anchors.get(name).ok_or_else(|| {
                    let name = short(name);
                    let what = format!("an alias '*{name}' without an anchor '&{name}'");
                    Error::with_remedy(what, event.start, QUOTE)
                })?;
                node.a = *target;
            }
            Content::Scalar { value, style, at } => {
                node.tag = tag.unwrap_or_else(|| match style {
                    Style::Plain => resolve::plain(&value),
                    // The reference's patterns overlook a line feed at the end.
                    _ if event.properties.resolves_as_plain() && *value != *"\n" => {
                        resolve::plain(value.strip_suffix('\n').unwrap_or(&value))
                    }
                    Style::Quoted | Style::Block => Tag::Str,
                });
                node.shape = match style {
                    Style::Plain => Shape::Plain,
                    Style::Quoted => Shape::Quoted,
                    Style::Block => Shape::Block,
                };
                match value {
                    Cow::Borrowed(value) => {
                        let start = if style == Style::Quoted { at + 1 } else { at };
                        (node.a, node.b) = (to_u32(start), to_u32(start + value.len()));
                    }
                    Cow::Owned(value) => {
                        node.pooled = true;
                        node.a = to_u32(self.pool.len());
                        self.pool.push_str(&value);
                        node.b = to_u32(self.pool.len());
                    }
                }
            }
            Content::SequenceStart | Content::End => {
                node.shape = Shape::Sequence;
                node.tag = tag.unwrap_or(Tag::Seq);
            }
            Content::MappingStart => {
                node.shape = Shape::Mapping;
                node.tag = tag.unwrap_or(Tag::Map);
            }
        }
        self.nodes.push(node);
        Ok(to_u32(self.nodes.len() - 1))
    }

    /// Makes a node the next child of `parent`; in a mapping, keys and values take turns.
    fn attach(&mut self, id: NodeId, parent: NodeId, is_key: &mut bool) {
        let Node { shape, a: first, b: last, .. } = self.nodes[parent as usize];
        if first == NONE {
            self.nodes[parent as usize].a = id;
        } else {
            self.nodes[last as usize].next = id;
        }
        self.nodes[parent as usize].b = id;
        if shape == Shape::Mapping {
            if *is_key && self.tag(self.target(id)) == Tag::Value {
                self.value_keys.entry(parent).or_insert(id);
            }
            *is_key = !*is_key;
        }
    }

    pub(in crate::engine) fn text(&self) -> &'a str {
        self.text
    }

    /// The root; `None` for a text without a document.
    pub(in crate::engine) fn root(&self) -> Option<NodeId> {
        self.root
    }

    /// The node itself, or what an alias names.
    pub(in crate::engine) fn target(&self, id: NodeId) -> NodeId {
        let node = &self.nodes[id as usize];
        if node.shape == Shape::Alias { node.a } else { id }
    }

    pub(in crate::engine) fn tag(&self, id: NodeId) -> Tag {
        self.nodes[id as usize].tag
    }

    pub(in crate::engine) fn shape(&self, id: NodeId) -> Shape {
        self.nodes[id as usize].shape
    }

    /// Byte offsets of the node in the text, its anchor and tag included.
    pub(in crate::engine) fn span(&self, id: NodeId) -> std::ops::Range<usize> {
        let node = &self.nodes[id as usize];
        node.start as usize..node.end as usize
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The value of a scalar; empty for other nodes.
    fn content(&self, id: NodeId) -> &str {
        let node = &self.nodes[id as usize];
        let whole = if node.pooled { self.pool.as_str() } else { self.text };
        match node.shape {
            Shape::Plain | Shape::Quoted | Shape::Block => &whole[node.a as usize..node.b as usize],
            Shape::Sequence | Shape::Mapping | Shape::Alias => "",
        }
    }

    /// The first child of a collection, which may be an alias.
    pub(super) fn first_child(&self, id: NodeId) -> Option<NodeId> {
        let node = &self.nodes[id as usize];
        let has_children = matches!(node.shape, Shape::Sequence | Shape::Mapping);
        Some(node.a).filter(|first| has_children && *first != NONE)
    }

    /// The next child of the same collection, which may be an alias.
    pub(super) fn sibling(&self, id: NodeId) -> Option<NodeId> {
        Some(self.nodes[id as usize].next).filter(|next| *next != NONE)
    }

    /// The children of a collection, keys and values of a mapping in turn, aliases followed.
    pub(in crate::engine) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first_child(id), |id| self.sibling(*id))
            .map(|id| self.target(id))
    }

    /// Key and value of each pair of a mapping, aliases followed.
    pub(in crate::engine) fn pairs(&self, id: NodeId) -> impl Iterator<Item = (NodeId, NodeId)> {
        let mut children = self.children(id);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Has merging made a string of the mapping's value key? Then the mapping stands for no scalar any
    /// more (observed of the reference, which changes the key in place).
    pub(super) fn lost_its_value(&self, id: NodeId) -> bool {
        self.value_keys.get(&id).is_some_and(|key| self.tag(self.target(*key)) != Tag::Value)
    }

    /// The scalar a node stands for and its value: itself, or of a mapping what stands at its value
    /// key `=` (yaml.org/type/value).
    pub(in crate::engine) fn scalar(&self, id: NodeId) -> Result<(NodeId, &str), Error> {
        let mut at = id;
        for _ in 0..=MAX_VALUES {
            match self.shape(at) {
                Shape::Plain | Shape::Quoted | Shape::Block => return Ok((at, self.content(at))),
                Shape::Mapping if self.value_keys.contains_key(&at) => {
                    at = self.target(self.nodes[self.value_keys[&at] as usize].next);
                }
                Shape::Sequence | Shape::Mapping | Shape::Alias => break,
            }
        }
        Err(Error::new("a collection with the tag of a scalar", self.span(id).start))
    }
}
