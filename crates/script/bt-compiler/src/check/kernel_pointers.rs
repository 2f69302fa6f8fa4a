//! Functions that take a pointer whose type the verifier must know. The verifier follows the
//! pointer from the context on, so the script must write the whole path to it in the call.

use bt_lang::Span;
use bt_lang::ast::ProbeKind;
use typeinfo::{NameKind, TypeRef};

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::ty::{Space, Ty, U64};

/// Name of the enumeration of the machine's system calls, if the compiler's caller has added one to
/// the script.
const CALLS: &str = "dptrace_syscall";

impl Check<'_, '_> {
    /// Checks `path(path[, length])`.
    pub(super) fn path(&mut self, call: &Call<'_>) -> Expr {
        let (room, limit) = self.text_room(call.args.get(1), call.name);
        let ty = Ty::Str(room.max(1));
        if limit.is_some() {
            return self.wrong(call.span, "path() needs a literal length");
        }
        self.with_kernel_pointer(call, "path", ty, Intrinsic::Path)
    }

    /// Checks `socket_cookie(socket)`.
    pub(super) fn socket_cookie(&mut self, call: &Call<'_>) -> Expr {
        self.with_kernel_pointer(call, "sock", U64, Intrinsic::SocketCookie)
    }

    /// Checks a call of such a function with a pointer to a `struct record`.
    fn with_kernel_pointer(
        &mut self,
        call: &Call<'_>,
        record: &str,
        ty: Ty,
        fun: Intrinsic,
    ) -> Expr {
        if !self.gets_pointers() {
            return self.not_here(call.name, "fentry, fexit and iter probes", call.span);
        }
        match self.kernel_pointer(call, record) {
            Some(place) => Expr::new(ty, ExprKind::Intrinsic(fun, vec![place]), call.span),
            None => Expr::new(ty, ExprKind::Error, call.span),
        }
    }

    /// Checks `syscall_name(number)`.
    pub(super) fn syscall_name(&mut self, call: &Call<'_>) -> Expr {
        let value = self.integer(&call.args[0]);
        match self.types.find_type(NameKind::Enum, CALLS) {
            Some(names) => {
                let ty = self.ty_in(names, Space::Kernel);
                self.convert(value, ty, call.span)
            }
            None => Expr {
                span: call.span,
                ..value
            },
        }
    }

    /// Returns true if the kernel gives such programs pointers whose types it knows.
    fn gets_pointers(&self) -> bool {
        matches!(
            self.context.kind,
            ProbeKind::Fentry | ProbeKind::Fexit | ProbeKind::Iter
        )
    }

    /// Returns the address of a struct that the kernel can follow. The argument is the struct or a
    /// pointer to it.
    fn kernel_pointer(&mut self, call: &Call<'_>, record: &str) -> Option<Expr> {
        let span = call.args[0].span;
        let value = self.expr(&call.args[0]);
        if value.ty.is_unknown() {
            return None;
        }
        let wanted = self.types.find_type(NameKind::Struct, record);
        let is_wanted = |check: &Self, ty: TypeRef| {
            check.types.store.strip(ty).ok() == wanted && wanted.is_some()
        };
        let place = match (&value.ty, &value.kind) {
            (Ty::C { ty, .. }, ExprKind::MemRef { addr, .. }) if is_wanted(self, *ty) => {
                (**addr).clone()
            }
            (Ty::Ptr { to, .. }, _) if is_wanted(self, *to) => value,
            (ty, _) => {
                let name = self.type_name(ty);
                let message = format!(
                    "{}() takes a struct {record} or a pointer to one, not '{name}'",
                    call.name
                );
                self.wrong(span, message);
                return None;
            }
        };
        if is_followed(&place) {
            return Some(place);
        }
        self.refuse_pointer(call.name, span);
        None
    }

    fn refuse_pointer(&mut self, name: &str, span: Span) {
        self.wrong_hint(
            span,
            format!("{name}() needs a pointer that the kernel itself has given to the probe"),
            "write it out, from args (in an iter probe: ctx) or curtask on: path(args.file.f_path); variables, maps and casts \
             have only its number",
        );
    }
}

/// Returns true if the kernel knows the type there: a word of the probe's own context, or memory
/// that such pointers lead to.
fn is_followed(place: &Expr) -> bool {
    match &place.kind {
        ExprKind::Ctx { size: 8, .. } | ExprKind::Intrinsic(Intrinsic::CurTask, _) => true,
        ExprKind::Convert(inner) => is_followed(inner),
        ExprKind::Load {
            addr, bits: None, ..
        } => is_followed(addr),
        ExprKind::Binary {
            op: bt_lang::ast::BinaryOp::Add,
            left,
            right,
            ..
        } => right.constant().is_some_and(|by| i32::try_from(by).is_ok()) && is_followed(left),
        _ => false,
    }
}
