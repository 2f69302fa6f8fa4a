//! Definitions at the head of a document: tracepoints and owners.

use crate::json::lexer::{Lexer, SyntaxError, contents};
use crate::tpoint::{ArgKind, ArgSpec, Tpoint};
use text::printable;

/// Parses the definition of a tracepoint; `None` if something required is missing or out of range.
pub(super) fn definition(lexer: &mut Lexer<'_>) -> Result<Option<Tpoint>, SyntaxError> {
    let (mut name, mut id, mut new_object, mut args) = (None, None, false, Some(Vec::new()));
    lexer.expect(b'{', "a tracepoint")?;
    loop {
        match lexer.key()? {
            b"name" => name = Some(text(lexer)?),
            b"id" => id = u16::try_from(lexer.number()?).ok(),
            b"new_object" => new_object = lexer.boolean()?,
            b"args" => args = arg_specs(lexer)?,
            _ => {
                lexer.skip()?;
            }
        }
        if !lexer.more(b'}')? {
            break;
        }
    }
    let (Some(name), Some(id), Some(args)) = (name, id, args) else {
        return Ok(None);
    };
    Ok(Some(Tpoint {
        id,
        name,
        owner_type: 0,
        owner_prefix: None,
        object_type: 0,
        object_prefix: None,
        new_object,
        args,
        relations: Vec::new(),
    }))
}

fn arg_specs(lexer: &mut Lexer<'_>) -> Result<Option<Vec<ArgSpec>>, SyntaxError> {
    let mut specs = Some(Vec::new());
    lexer.expect(b'[', "an array of arguments")?;
    if lexer.take(b']') {
        return Ok(specs);
    }
    loop {
        let (mut name, mut kind, mut size) = (None, None, Some(8));
        lexer.expect(b'{', "an argument")?;
        loop {
            match lexer.key()? {
                b"name" => name = Some(text(lexer)?),
                b"type" => kind = ArgKind::from_number(lexer.number()?),
                b"size" => size = u8::try_from(lexer.number()?).ok(),
                _ => {
                    lexer.skip()?;
                }
            }
            if !lexer.more(b'}')? {
                break;
            }
        }
        specs = match (specs, name, kind, size) {
            (Some(mut specs), Some(name), Some(kind), Some(size)) => {
                specs.push(ArgSpec { name, kind, size });
                Some(specs)
            }
            _ => None,
        };
        if !lexer.more(b']')? {
            return Ok(specs);
        }
    }
}

pub(super) fn owners(lexer: &mut Lexer<'_>) -> Result<Vec<(String, String)>, SyntaxError> {
    let mut owners = Vec::new();
    lexer.expect(b'{', "a table of owners")?;
    if lexer.take(b'}') {
        return Ok(owners);
    }
    loop {
        let id = printable::text(lexer.key()?).into_owned();
        owners.push((id, text(lexer)?));
        if !lexer.more(b'}')? {
            return Ok(owners);
        }
    }
}

fn text(lexer: &mut Lexer<'_>) -> Result<String, SyntaxError> {
    let token = lexer.string()?;
    Ok(printable::text(&contents(lexer.text, token)).into_owned())
}
