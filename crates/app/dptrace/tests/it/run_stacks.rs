//! Stacks of processes in `dptrace run`: the names of their frames, and where a stack is cut.

use std::path::{Path, PathBuf};

use crate::common::compile;
use crate::common::kernel::{kernel, needs};
use crate::common::run::run;

/// Source of a program whose stack is `leaf`, `inner`, `ends`, `middle`, `main`, then an address
/// that is no code, and `main` again. The last instruction of `middle` is a call that does not
/// return, so its return address is in `after`. The program waits, so that it can be read.
const SOURCE: &str = r"
#include <unistd.h>
long data = 7;
void leaf(long *address) { __asm__ volatile('' ::'r'(address) : 'memory'); }
void inner(void) { leaf(&data); __asm__ volatile('' ::: 'memory'); }
__attribute__((noreturn)) void ends(void)
{
    inner();
    for (;;)
        pause();
}
int main(void);
void middle(unsigned long *frames)
{
    unsigned long *own = __builtin_frame_address(0);
    frames[0] = (unsigned long)(frames + 2);
    frames[1] = (unsigned long)&data;
    frames[2] = 0;
    frames[3] = (unsigned long)main + 1;
    own[0] = (unsigned long)frames;
    ends();
}
void after(void) {}
int main(void)
{
    unsigned long frames[4];
    middle(frames);
    return 0;
}
";

/// Builds the program, and `bare`, the same without symbols. `None` if the tools are missing.
pub(crate) fn build(folder: &Path) -> Option<PathBuf> {
    if !needs("cc") || !needs("objcopy") {
        return None;
    }
    std::fs::write(folder.join("stack.c"), SOURCE.replace('\'', "\"")).unwrap();
    let steps: [&[&str]; 2] = [
        &[
            "cc",
            "-O0",
            "-fno-omit-frame-pointer",
            "-fno-stack-protector",
            "-o",
            "stack",
            "stack.c",
        ],
        &["objcopy", "--strip-all", "stack", "bare"],
    ];
    for step in steps {
        let done = testkit::command(step[0])
            .args(&step[1..])
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success(), "{step:?}");
    }
    Some(folder.join("stack"))
}

/// End of a line for a frame that is no code, behind its address.
const CUT: &str = ": no code here: built without frame pointers?)";

#[test]
fn callers_are_named_by_their_calls_and_a_stack_ends_at_the_first_frame_that_is_no_code() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else {
        return;
    };
    let program = program.display().to_string();
    let script =
        format!("uprobe:{program}:leaf {{ printf(\"%s%s\\n\", usym(arg0), ustack); exit(); }}");
    let (out, _) = run(&["-e", &script, "-c", &program]);
    let mut lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    let data = lines.next().unwrap_or_default();
    assert!(data.starts_with("0x"), "{out}");
    let names: Vec<&str> = lines
        .map(|line| if line.ends_with(CUT) { CUT } else { line })
        .map(|line| line.split('+').next().unwrap_or_default())
        .collect();
    // A kernel that does not recognize the start of `leaf` leaves out its caller.
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "inner").collect();
    assert_eq!(names, ["leaf", "ends", "middle", "main", CUT], "{out}");
}

#[test]
fn code_without_a_name_is_shown_by_its_module_and_its_offset() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else {
        return;
    };
    if !needs("nm") {
        return;
    }
    let symbols = testkit::command("nm").arg(&program).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let leaf = symbols
        .lines()
        .find(|line| line.ends_with(" leaf"))
        .and_then(|line| line.split(' ').next())
        .unwrap();
    let leaf = u64::from_str_radix(leaf, 16).unwrap();
    let bare = folder.path().join("bare").display().to_string();
    let script = format!(
        "uprobe:{bare}:{leaf:#x} {{ printf(\"%s%s\\n\", usym(reg(\"ip\")), ustack); exit(); }}"
    );
    let (out, _) = run(&["-e", &script, "-c", &bare]);
    let lines: Vec<&str> = out
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let first = format!("bare+{leaf:#x}");
    assert_eq!(lines[..2], [&first, &first], "{out}");
    assert!(
        lines.len() >= 5
            && lines[..lines.len() - 1]
                .iter()
                .all(|line| line.starts_with("bare+0x")),
        "{out}"
    );
    assert!(
        lines
            .last()
            .is_some_and(|last| last.starts_with("... (0x") && last.ends_with(CUT)),
        "{out}"
    );
}

/// Source of a program that calls `leaf` through code that it generates in memory. With an
/// argument, it writes the perf map file for it.
const JIT: &str = r"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void leaf(void) { __asm__ volatile('' ::: 'memory'); }
void inner(void) { leaf(); __asm__ volatile('' ::: 'memory'); }
void outer(void) { inner(); __asm__ volatile('' ::: 'memory'); }
/* A frame, and a call of its argument. */
#ifdef __x86_64__
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
static const unsigned int code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif
int main(int count, char **words)
{
    char path[64];
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    __builtin___clear_cache(memory, (char *)memory + sizeof code);
    snprintf(path, sizeof path, '/tmp/perf-%d.map', (int)getpid());
    if (count > 1) {
        FILE *names = fopen(path, 'w');
        fprintf(names, '%lx %x made\033[31m here\n', (unsigned long)memory, (unsigned)sizeof code);
        fclose(names);
        printf('%s\n', path);
        fflush(stdout);
    }
    ((void (*)(void (*)(void)))memory)(outer);
    for (;;)
        pause();
}
";

#[test]
fn code_that_a_process_makes_is_named_by_its_file_of_names() {
    let Some(_alone) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["-O0", "-fno-omit-frame-pointer"];
    let program = compile(folder.path(), "jit", &JIT.replace('\'', "\""), &options);
    let script = format!("uprobe:{program}:leaf {{ printf(\"%s\\n\", ustack); exit(); }}");
    let (out, err) = run(&["-e", &script, "-c", &format!("{program} named")]);
    let path = out
        .lines()
        .find(|line| line.starts_with("/tmp/perf-"))
        .expect("it says which");
    std::fs::remove_file(path).expect("it wrote it");
    assert!(
        out.contains("  made\\x1b[31m here+") && out.contains("  main+"),
        "{out}"
    );
    assert!(!err.contains("JIT"), "{err}");
    let (out, err) = run(&["-e", &script, "-c", &program]);
    assert!(
        out.contains("  0x") && out.contains("  main+") && !out.contains("made"),
        "{out}"
    );
    assert!(
        err.contains("runs code that it generated at run time (JIT), and there is no /tmp/perf-"),
        "{err}"
    );
}

/// Source of a program that ends at once: its stacks are printed when it is gone. `start` is called
/// by `main`, and by a library that is closed again.
const SHORT: &str = r"
#include <dlfcn.h>
__attribute__((noinline)) int leaf(void) { __asm__ volatile('' ::: 'memory'); return 0; }
__attribute__((noinline)) int start(void) { int it = leaf(); __asm__ volatile('' ::: 'memory'); return it; }
#ifdef LIBRARY
int through(int (*back)(void)) { int it = back(); __asm__ volatile('' ::: 'memory'); return it; }
#else
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[1], RTLD_NOW);
    int (*through)(int (*)(void)) = library ? dlsym(library, 'through') : 0;
    int it = through ? through(start) : 1;
    if (library)
        dlclose(library);
    return it + start();
}
#endif
";

/// The kernel places libraries at random: only the mappings at that time give their addresses
/// names.
#[test]
fn stacks_of_a_command_that_has_ended_have_names() {
    let Some(_alone) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let built = |name, more: &[&str]| {
        let options = [
            &[
                "-O1",
                "-fno-omit-frame-pointer",
                "-fno-optimize-sibling-calls",
            ],
            more,
        ]
        .concat();
        compile(folder.path(), name, &SHORT.replace('\'', "\""), &options)
    };
    let (program, library) = (
        built("short", &["-ldl"]),
        built("short.so", &["-DLIBRARY", "-shared", "-fPIC"]),
    );
    let script = format!("uprobe:{program}:leaf {{ @[ustack] = count(); }}");
    // Run directly, and after an exec of another program.
    for command in [
        format!("{program} {library}"),
        format!("env {program} {library}"),
    ] {
        let (out, _) = run(&["-e", &script, "-c", &command]);
        let stacks: Vec<&str> = out.split("@[").skip(1).collect();
        assert_eq!(stacks.len(), 2, "{out}");
        let has = |stack: &str, frames: &[&str]| {
            let names = stack
                .lines()
                .filter_map(|line| line.trim().split_once('+'))
                .map(|(name, _)| name);
            names.take(frames.len()).eq(frames.iter().copied())
        };
        // `leaf` has not set up its frame yet, so that its caller is missing.
        assert!(
            stacks
                .iter()
                .any(|stack| has(stack, &["leaf", "through", "main"])),
            "{out}"
        );
        let by_libc =
            |stack: &&str| has(stack, &["leaf", "main"]) && stack.contains("__libc_start");
        assert!(stacks.iter().any(by_libc), "{out}");
    }
}
