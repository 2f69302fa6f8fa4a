//! Functions that read or build values in memory.

use bt_lang::ast::{self, BinaryOp};

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::ty::{I64, Space, Ty, U64};
use bt_abi::ValueType;

/// Limit on a string's size in bytes. A per-CPU value has 32 KiB, and an event's offsets have 15
/// bits.
pub(super) const MAX_STR: u32 = 16 << 10;

impl Check<'_, '_> {
    /// Returns a value's room and, for a length known only at run time, the limit on the bytes
    /// read. A literal length sets the room, up to `most`; any other sets the limit.
    fn length(&mut self, arg: Option<&ast::Expr>, most: u32, what: &str) -> (u32, Option<Expr>) {
        let Some(arg) = arg else {
            return (most, None);
        };
        let value = self.integer(arg);
        match value.constant() {
            Some(number) if number <= u64::from(most) => (number as u32, None),
            Some(number) if value.ty.is_signed() && number.cast_signed() < 0 => {
                self.wrong(arg.span, format!("{what}() length cannot be negative"));
                (most, None)
            }
            Some(_) => (most, None),
            None => (most, Some(value)),
        }
    }

    /// Returns the room of a string that a function builds, and the limit that is known only at run
    /// time.
    pub(super) fn text_room(&mut self, arg: Option<&ast::Expr>, what: &str) -> (u32, Option<Expr>) {
        let most = self.inputs.config.max_strlen.min(MAX_STR);
        self.length(arg, most, what)
    }

    pub(super) fn str_call(&mut self, call: &Call<'_>) -> Expr {
        let (span, most) = (call.span, self.inputs.config.max_strlen.min(MAX_STR));
        // `str($1)` is a parameter's text even if it looks like a number; `str($1 + 2)` is the text
        // without its first two bytes.
        if let Some((number, skipped)) = self.text_of_param(&call.args[0]) {
            let mut text = self.param(number).unwrap_or_default().into_bytes();
            text.drain(..skipped.min(text.len()));
            let (room, _) = self.length(call.args.get(1), most, call.name);
            text.truncate(room as usize);
            return self.string(text, span);
        }
        let value = self.expr(&call.args[0]);
        // As in bpftrace, an explicit length includes the NUL; a string cut by the setting has
        // none.
        let (length, limit) = self.length(call.args.get(1), most, call.name);
        let room = length.max(1);
        // A length equal to the limit still counts as explicit: a text cut there is not marked as
        // cut.
        let limit = match call.args.get(1).map(|arg| &arg.kind) {
            Some(ast::ExprKind::Int(int)) if int.value == u64::from(most) => {
                Some(Expr::int(int.value, U64, span))
            }
            _ => limit,
        };
        let ty = Ty::Str(room);
        match &value.ty {
            Ty::Unknown => return Expr::new(ty, ExprKind::Error, span),
            Ty::Str(size) => {
                let ty = Ty::Str(room.min(*size));
                let args = std::iter::once(value).chain(limit).collect();
                return Expr::new(ty, ExprKind::Intrinsic(Intrinsic::CutStr, args), span);
            }
            Ty::Array { elem, count } if elem.size() == 1 => {
                let ty = Ty::Str(room.min(*count + 1));
                let args = std::iter::once(value).chain(limit).collect();
                return Expr::new(ty, ExprKind::Intrinsic(Intrinsic::CutStr, args), span);
            }
            _ => {}
        }
        let Some((addr, space)) = self.address(value.clone()) else {
            let name = self.type_name(&value.ty);
            return self.wrong(
                span,
                format!(
                    "{}() takes an integer or a pointer, not '{name}'",
                    call.name
                ),
            );
        };
        let space = if call.name == "kstr" {
            Space::Kernel
        } else {
            space
        };
        let args = std::iter::once(addr).chain(limit).collect();
        Expr::new(
            ty,
            ExprKind::Intrinsic(Intrinsic::ReadStr(space), args),
            span,
        )
    }

    /// Returns the number of a parameter used as text, and the number of leading bytes skipped.
    fn text_of_param(&mut self, arg: &ast::Expr) -> Option<(u32, usize)> {
        match &arg.kind {
            ast::ExprKind::Positional(number) => Some((*number, 0)),
            ast::ExprKind::Binary {
                op: BinaryOp::Add,
                left,
                right,
                ..
            } => {
                let ast::ExprKind::Positional(number) = left.kind else {
                    return None;
                };
                // For a parameter that is a number, the sum is an address.
                self.param(number)
                    .filter(|text| super::literals::number(text).is_none())?;
                let skipped = self.integer(right).constant()?;
                Some((number, usize::try_from(skipped).unwrap_or(usize::MAX)))
            }
            _ => None,
        }
    }

    pub(super) fn buf(&mut self, call: &Call<'_>) -> Expr {
        let span = call.span;
        let value = self.expr(&call.args[0]);
        if value.ty.is_unknown() {
            return Expr::error(span);
        }
        let known = match &value.ty {
            Ty::Array { .. } | Ty::Str(_) | Ty::C { .. } => Some(value.ty.size()),
            _ => None,
        };
        let most = self.inputs.config.max_strlen.min(MAX_STR);
        let (room, limit) = match (call.args.get(1), known) {
            (None, Some(size)) => (size.min(most), None),
            (None, None) => {
                let name = self.type_name(&value.ty);
                return self.wrong(
                    span,
                    format!("buf() needs a length for '{name}': only arrays have one"),
                );
            }
            (arg, _) => self.length(arg, most, "buf"),
        };
        let own = !matches!(value.kind, ExprKind::MemRef { .. }) && !value.ty.is_scalar();
        if own {
            let args = std::iter::once(value).chain(limit).collect();
            return Expr::new(
                Ty::Buf(room.min(known.unwrap_or(room))),
                ExprKind::Intrinsic(Intrinsic::CutStr, args),
                span,
            );
        }
        let Some((addr, space)) = self.address(value) else {
            return self.wrong(span, "buf() expects an integer, pointer or array argument");
        };
        let args = std::iter::once(addr).chain(limit).collect();
        Expr::new(
            Ty::Buf(room),
            ExprKind::Intrinsic(Intrinsic::ReadBuf(space), args),
            span,
        )
    }

    /// Checks `memcmp(a, b, count)` of any two values, by their bytes in memory.
    pub(super) fn memcmp(&mut self, call: &Call<'_>) -> Expr {
        let (left, right) = (self.expr(&call.args[0]), self.expr(&call.args[1]));
        let count = self.integer(&call.args[2]);
        if [&left, &right, &count]
            .iter()
            .any(|value| value.ty.is_unknown())
        {
            return Expr::new(I64, ExprKind::Error, call.span);
        }
        let most = left.ty.size().min(right.ty.size());
        if let Some(bytes) = count.constant().filter(|bytes| *bytes > u64::from(most)) {
            let message =
                format!("memcmp() can't compare {bytes} bytes: the shorter value has {most}");
            return self.wrong(call.args[2].span, message);
        }
        let count = self.convert(count, U64, call.args[2].span);
        Expr::new(
            I64,
            ExprKind::Intrinsic(Intrinsic::MemCmp, vec![left, right, count]),
            call.span,
        )
    }

    /// Checks `write_user(address, value, count)`, where the value may be given by its address:
    /// `&$value`.
    pub(super) fn write_user(&mut self, call: &Call<'_>) -> Expr {
        if !self.inputs.facts.allows_unsafe() {
            let message = "write_user() is unsafe. To use you need the --unsafe flag";
            return self.wrong_hint(
                call.span,
                message,
                "it changes the memory of the process that hits the probe",
            );
        }
        let addr = self.expr(&call.args[0]);
        let value = match &call.args[1].kind {
            ast::ExprKind::Unary {
                op: ast::UnaryOp::AddrOf,
                operand,
            } => self.expr(operand),
            _ => self.expr(&call.args[1]),
        };
        let count = self.integer(&call.args[2]);
        let Some((addr, _)) = self.address(addr) else {
            return self.wrong(
                call.args[0].span,
                "write_user() expects an address to write to",
            );
        };
        if value.ty.is_unknown() || count.ty.is_unknown() {
            return Expr::new(Ty::Bool, ExprKind::Error, call.span);
        }
        let size = value.ty.size();
        if let Some(bytes) = count
            .constant()
            .filter(|bytes| !(1..=u64::from(size)).contains(bytes))
        {
            let message =
                format!("write_user() can't write {bytes} bytes of a value that has {size}");
            return self.wrong(call.args[2].span, message);
        }
        let count = self.convert(count, U64, call.args[2].span);
        Expr::new(
            Ty::Bool,
            ExprKind::Intrinsic(Intrinsic::WriteUser, vec![addr, value, count]),
            call.span,
        )
    }

    pub(super) fn ntop(&mut self, call: &Call<'_>) -> Expr {
        let values: Vec<Expr> = call.args.iter().map(|arg| self.expr(arg)).collect();
        let mut values = values.into_iter();
        let (family, value) = match (values.next(), values.next()) {
            (Some(family), Some(value)) => (Some(family), value),
            (Some(value), None) => (None, value),
            _ => return self.impossible(call.span, "a call without its arguments"),
        };
        let fun = match &value.ty {
            Ty::Unknown => {
                return Expr::new(Ty::Opaque(ValueType::Inet), ExprKind::Error, call.span);
            }
            Ty::Int { .. } if family.is_none() => Intrinsic::Inet4,
            Ty::Int { .. } => Intrinsic::InetFamily,
            Ty::Array {
                elem,
                count: 4 | 16,
            } if elem.size() == 1 => Intrinsic::InetBytes,
            Ty::Str(4 | 16) => Intrinsic::InetBytes,
            ty if ty.size() == 4 || ty.size() == 16 => Intrinsic::InetBytes,
            ty => {
                let name = self.type_name(ty);
                return self.wrong(
                    call.span,
                    format!("ntop() expects an integer or array argument, not '{name}'"),
                );
            }
        };
        let args = if fun == Intrinsic::InetFamily {
            family.into_iter().chain([value]).collect()
        } else {
            vec![value]
        };
        Expr::new(
            Ty::Opaque(ValueType::Inet),
            ExprKind::Intrinsic(fun, args),
            call.span,
        )
    }

    pub(super) fn pton(&mut self, call: &Call<'_>) -> Expr {
        let Some(text) = self.literal(&call.args[0], "pton") else {
            return Expr::error(call.span);
        };
        let bytes = match text.parse::<std::net::IpAddr>() {
            Ok(std::net::IpAddr::V4(address)) => address.octets().to_vec(),
            Ok(std::net::IpAddr::V6(address)) => address.octets().to_vec(),
            Err(_) => {
                return self.wrong(
                    call.args[0].span,
                    format!("pton() expects an IPv4 or IPv6 address, got '{text}'"),
                );
            }
        };
        let elem = Box::new(Ty::Int {
            size: 1,
            signed: false,
        });
        Expr::new(
            Ty::Array {
                elem,
                count: bytes.len() as u32,
            },
            ExprKind::Str(bytes),
            call.span,
        )
    }

    pub(super) fn macaddr(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        match &value.ty {
            Ty::Unknown => Expr::new(
                Ty::Opaque(ValueType::MacAddress),
                ExprKind::Error,
                call.span,
            ),
            ty if ty.is_scalar() => {
                let space = self.space_of(&value);
                Expr::new(
                    Ty::Opaque(ValueType::MacAddress),
                    ExprKind::Intrinsic(Intrinsic::Mac(space), vec![value]),
                    call.span,
                )
            }
            ty if ty.size() == 6 => Expr {
                ty: Ty::Opaque(ValueType::MacAddress),
                span: call.span,
                ..value
            },
            ty => {
                let name = self.type_name(ty);
                self.wrong(
                    call.span,
                    format!(
                        "macaddr() argument must be 6 bytes in size, not a '{name}' of {}",
                        value.ty.size()
                    ),
                )
            }
        }
    }
}
