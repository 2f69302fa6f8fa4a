//! Calls, and the table of functions.

use bt_lang::Span;
use bt_lang::ast::{self, Name};
use text::patterns::did_you_mean;

use super::Check;
use super::aggregates::AGGREGATES;
use super::builtins::BUILTINS;
use crate::hir::Expr;
use crate::ty::Ty;

/// Call as written in the script.
pub(super) struct Call<'e> {
    pub(super) name: &'e str,
    pub(super) args: &'e [ast::Expr],
    pub(super) span: Span,
}

/// Function of the language.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Signature as in the documentation.
    pub(crate) signature: &'static str,
    pub(crate) doc: &'static str,
    /// Least and greatest number of arguments.
    args: (usize, usize),
    make: fn(&mut Check<'_, '_>, &Call<'_>) -> Expr,
}

const ANY: usize = usize::MAX;

macro_rules! functions {
    ($($name:literal $signature:literal $doc:literal ($least:expr, $most:expr) $make:expr;)*) => {
        /// All functions of the language.
        pub(crate) const FUNCTIONS: &[Function] =
            &[$(Function { name: $name, signature: $signature, doc: $doc, args: ($least, $most), make: $make },)*];
    };
}

functions! {
    "printf" "printf(format, ...)" "Prints to standard output." (1, ANY) |check, call| check.printf(call);
    "errorf" "errorf(format, ...)" "Prints to standard error, as an error." (1, ANY) |check, call| check.printf(call);
    "warnf" "warnf(format, ...)" "Prints to standard error, as a warning." (1, ANY) |check, call| check.printf(call);
    "debugf" "debugf(format, ...)" "Prints to the kernel's trace pipe (tracefs, trace_pipe)." (1, ANY) |check, call| check.debugf(call);
    "print" "print(value), print(@map[, top[, div]])" "Prints a value, or a map." (1, 3) |check, call| check.print(call);
    "clear" "clear(@map)" "Removes all keys." (1, 1) |check, call| check.clear(call);
    "zero" "zero(@map)" "Sets all values to 0." (1, 1) |check, call| check.clear(call);
    "exit" "exit([code])" "Ends the script." (0, 1) |check, call| check.exit(call);
    "time" "time([format])" "Prints the time of day." (0, 1) |check, call| check.time(call);
    "cat" "cat(format, ...)" "Prints a file." (1, ANY) |check, call| check.cat(call);
    "system" "system(format, ...)" "Runs a command. Needs --unsafe." (1, ANY) |check, call| check.cat(call);
    "join" "join(argv[, delimiter])" "Prints the strings of an array that ends with a null pointer." (1, 2) |check, call| check.join(call);
    "str" "str(address[, length])" "The string at an address." (1, 2) |check, call| check.str_call(call);
    "kstr" "kstr(address[, length])" "The string at an address of the kernel." (1, 2) |check, call| check.str_call(call);
    "buf" "buf(data[, length])" "Bytes." (1, 2) |check, call| check.buf(call);
    "signal_name" "signal_name(number)" "A signal's number as text." (1, 1) |check, call| check.signal_name(call);
    "strftime" "strftime(format, nsecs)" "A time as text." (2, 2) |check, call| check.strftime(call);
    "strerror" "strerror(error)" "An error number as text." (1, 1) |check, call| check.strerror(call);
    "strncmp" "strncmp(a, b, length)" "0 if the strings begin alike." (3, 3) |check, call| check.strncmp(call);
    "strcontains" "strcontains(text, part)" "True if a string contains another." (2, 2) |check, call| check.strcontains(call);
    "strstr" "strstr(text, part)" "Where a string contains another, counted from 0; -1 if it does not." (2, 2) |check, call| check.strstr(call);
    "str_concat" "str_concat(a, b)" "Both strings as one." (2, 2) |check, call| check.str_concat(call);
    "memcmp" "memcmp(a, b, count)" "Compares the first bytes of two values: 0 if they are equal, below 0 if a is less." (3, 3) |check, call| check.memcmp(call);
    "strlen" "strlen(text)" "The length of a string." (1, 1) |check, call| check.strlen(call);
    "strcap" "strcap(text)" "The capacity of a string." (1, 1) |check, call| check.strcap(call);
    "ksym" "ksym(address)" "The kernel symbol at an address." (1, 1) |check, call| check.ksym(call);
    "usym" "usym(address)" "The process's symbol at an address." (1, 1) |check, call| check.usym(call);
    "kaddr" "kaddr(name)" "The address of a kernel symbol." (1, 1) |check, call| check.kaddr(call);
    "percpu_kaddr" "percpu_kaddr(name[, cpu])" "The address of a per-CPU kernel symbol: this CPU's, or that of another CPU." (1, 2) |check, call| check.percpu_kaddr(call);
    "uaddr" "uaddr(name)" "The address of a symbol in the traced file." (1, 1) |check, call| check.uaddr(call);
    "reg" "reg(name)" "A register." (1, 1) |check, call| check.reg(call);
    "kstack" "kstack([mode][, depth])" "The kernel's stack." (0, 2) |check, call| check.stack(false, call.args, call.span);
    "ustack" "ustack([mode][, depth])" "The process's stack." (0, 2) |check, call| check.stack(true, call.args, call.span);
    "ntop" "ntop([family, ]address)" "An IP address as text." (1, 2) |check, call| check.ntop(call);
    "pton" "pton(text)" "The bytes of an IP address." (1, 1) |check, call| check.pton(call);
    "macaddr" "macaddr(bytes)" "A MAC address as text." (1, 1) |check, call| check.macaddr(call);
    "cgroupid" "cgroupid(path)" "The id of a cgroup." (1, 1) |check, call| check.cgroupid(call);
    "cgroup_path" "cgroup_path(id[, hierarchy])" "A cgroup's path." (1, 2) |check, call| check.cgroup_path(call);
    "kptr" "kptr(pointer)" "The pointer, as one into the kernel's memory." (1, 1) |check, call| check.in_space(call);
    "uptr" "uptr(pointer)" "The pointer, as one into the process's memory." (1, 1) |check, call| check.in_space(call);
    "bswap" "bswap(n)" "A number with its bytes reversed." (1, 1) |check, call| check.bswap(call);
    "signal" "signal(name or number)" "Sends a signal to the process. Needs --unsafe." (1, 1) |check, call| check.signal(call);
    "signal_thread" "signal_thread(name or number)" "Sends a signal to the thread. Needs --unsafe." (1, 1) |check, call| check.signal(call);
    "write_user" "write_user(address, value, count)" "Writes the first bytes of a value into the process's memory; true if that worked. Needs --unsafe." (3, 3) |check, call| check.write_user(call);
    "nsecs" "nsecs([clock])" "The time of a clock: monotonic, boot, tai or sw_tai." (0, 1) |check, call| check.nsecs(call);
    "pid" "pid([namespace])" "The process's id: of our namespace (curr_ns), or of the first (init)." (0, 1) |check, call| check.pid(call);
    "tid" "tid([namespace])" "The thread's id, likewise." (0, 1) |check, call| check.pid(call);
    "delete" "delete(@map, key), delete(@map[key])" "Removes a key; true if it existed." (1, 2) |check, call| check.delete(call);
    "has_key" "has_key(@map, key)" "True if a map has a key." (2, 2) |check, call| check.has_key(call);
    "find" "find(@map, key, $variable)" "True if a map has a key; its value is stored in the variable." (3, 3) |check, call| check.find(call);
    "len" "len(@map), len(stack)" "The number of keys or frames." (1, 1) |check, call| check.len(call);
    "getopt" "getopt(name[, default[, description]])" "An option of the command line." (1, 3) |check, call| check.getopt(call);
    "assert" "assert(condition, message)" "Ends the script if the condition is false." (2, 2) |check, call| check.assert(call);
    "static_assert" "static_assert(condition, message)" "Refuses to compile if the condition is false." (2, 2) |check, call| check.static_assert(call);
    "fail" "fail(format, ...)" "Refuses to compile." (1, ANY) |check, call| check.fail(call);
    "assert_str" "assert_str(value)" "Refuses to compile if it is not a string." (1, 1) |check, call| check.assert_str(call);
    "kfunc_exist" "kfunc_exist(name)" "True if the kernel's BTF has a function of that name." (1, 1) |check, call| check.kfunc_exist(call);
    "kfunc_allowed" "kfunc_allowed(name)" "True if a script can call this kernel function: never, so that scripts use their fallback." (1, 1) |check, call| check.kfunc_allowed(call);
    "container_of" "container_of(pointer, type, member)" "The struct that contains the member that a pointer points to." (3, 3) |check, call| check.container_of(call);
    "ppid" "ppid(task)" "The parent's id of a `struct task_struct`; without it, as the builtin." (0, 1) |check, call| check.task_field(call, &["real_parent", "tgid"]);
    "pcomm" "pcomm(task)" "The parent's name, likewise." (0, 1) |check, call| check.task_field(call, &["real_parent", "comm"]);
    "leader_tid" "leader_tid(task)" "The id of the process's first thread, likewise." (0, 1) |check, call| check.task_field(call, &["group_leader", "pid"]);
    "leader_comm" "leader_comm(task)" "The name of the process's first thread, likewise." (0, 1) |check, call| check.task_field(call, &["group_leader", "comm"]);
    "is_err" "is_err(pointer)" "True if a kernel pointer encodes an error." (1, 1) |check, call| check.is_err(call);
    "is_str" "is_str(value)" "True if it is a string." (1, 1) |check, call| check.is_kind(&call.args[0], call.span, |ty| matches!(ty, Ty::Str(_)));
    "is_ptr" "is_ptr(value)" "True if it is a pointer." (1, 1) |check, call| check.is_kind(&call.args[0], call.span, |ty| matches!(ty, Ty::Ptr { .. }));
    "is_array" "is_array(value)" "True if it is an array." (1, 1) |check, call| check.is_kind(&call.args[0], call.span, |ty| matches!(ty, Ty::Array { .. }));
    "is_integer" "is_integer(value)" "True if it is an integer." (1, 1) |check, call| check.is_kind(&call.args[0], call.span, |ty| matches!(ty, Ty::Int { .. }));
    "is_unsigned_integer" "is_unsigned_integer(value)" "True if it is an unsigned integer." (1, 1) |check, call| check.is_kind(&call.args[0], call.span, |ty| matches!(ty, Ty::Int { signed: false, .. }));
    "path" "path(path[, length])" "The full name of an open file, from its `struct path`; in iter, and some fentry and fexit probes (Linux 5.10)." (1, 2) |check, call| check.path(call);
    "socket_cookie" "socket_cookie(socket)" "The kernel's cookie of a `struct sock`; in fentry, fexit and iter probes (Linux 5.12)." (1, 1) |check, call| check.socket_cookie(call);
    "syscall_name" "syscall_name(number)" "The name of a system call." (1, 1) |check, call| check.syscall_name(call);
    "is_literal" "is_literal(value)" "True if it is a literal." (1, 1) |check, call| Expr::int(u64::from(check.is_literal(&call.args[0])), Ty::Bool, call.span);
}

/// Known functions that are refused, each with a replacement.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    (
        "dw_ustack",
        "ustack() follows frame pointers; build the program with -fno-omit-frame-pointer",
    ),
    ("override", "dptrace changes nothing in what it traces"),
    ("skboutput", "print the fields that matter"),
    (
        "unwatch",
        "end the script with exit(), or watch for a shorter time: --for",
    ),
];

/// Returns true if the language has a builtin or function of that name.
pub(crate) fn is_word(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
        || BUILTINS.iter().any(|builtin| builtin.name == name)
}

impl Check<'_, '_> {
    pub(super) fn call(&mut self, func: &Name, args: &[ast::Expr], span: Span) -> Expr {
        let name = func.text.as_str();
        if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
            let (least, most) = function.args;
            if args.len() < least || args.len() > most {
                let hint = format!("as in {}", function.signature);
                let message = format!(
                    "{name}() can't have {} argument{}",
                    args.len(),
                    if args.len() == 1 { "" } else { "s" }
                );
                return self.wrong_hint(span, message, hint);
            }
            return (function.make)(self, &Call { name, args, span });
        }
        let plain = name.strip_prefix("__builtin_").unwrap_or(name);
        if args.is_empty() && BUILTINS.iter().any(|builtin| builtin.name == plain) {
            return self.ident(name, span);
        }
        if super::aggregates::find(name).is_some() {
            return self.wrong_hint(
                span,
                format!("{name}() must be assigned directly to a map"),
                format!("as in @ = {name}(...)"),
            );
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return self.wrong_hint(func.span, format!("{name}() is not supported"), *instead);
        }
        if !self.diagnostics.would_keep(func.span) {
            return Expr::error(func.span);
        }
        let known = FUNCTIONS
            .iter()
            .map(|function| function.name)
            .chain(AGGREGATES.iter().map(|of_map| of_map.name));
        let hint = did_you_mean(&bt_lang::nearest(name, known))
            .unwrap_or_else(|| "macros must be defined in the script".to_owned());
        self.wrong_hint(func.span, format!("unknown function: '{name}'"), hint)
    }
}
