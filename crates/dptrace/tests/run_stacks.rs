//! Stacks of processes in `dptrace run`: what is named, how, and where a stack is cut.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that is not set up as it should be fails")]

#[path = "common/kernel.rs"]
#[expect(dead_code, reason = "nothing is recorded here")]
mod kernel;
#[path = "common/run.rs"]
mod run;

use std::path::{Path, PathBuf};
use std::process::Command;

use kernel::{kernel, needs};
use run::run;

/// The stack is `leaf`, `inner`, `ends`, `middle`, `main`, and then what is no code, and `main` again. The last instruction of
/// `middle` is a call that does not return: the address behind it is that of `after`. It waits, so that it can be read.
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

/// Makes the program, and `bare`, the same without symbols; nothing if there are no tools.
fn build(folder: &Path) -> Option<PathBuf> {
    if !needs("cc") || !needs("objcopy") {
        return None;
    }
    std::fs::write(folder.join("stack.c"), SOURCE.replace('\'', "\"")).unwrap();
    let steps: [&[&str]; 2] = [
        &["cc", "-O0", "-fno-omit-frame-pointer", "-fno-stack-protector", "-o", "stack", "stack.c"],
        &["objcopy", "--strip-all", "stack", "bare"],
    ];
    for step in steps {
        let done = Command::new(step[0]).args(&step[1..]).current_dir(folder).status();
        assert!(done.unwrap().success(), "{step:?}");
    }
    Some(folder.join("stack"))
}

const CUT: &str = "... (no code here: built without frame pointers?)";

#[test]
fn callers_are_named_by_their_calls_and_a_stack_ends_at_the_first_frame_that_is_no_code() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return };
    let program = program.display().to_string();
    let script = format!("uprobe:{program}:leaf {{ printf(\"%s%s\\n\", usym(arg0), ustack); exit(); }}");
    let (out, _) = run(&["-e", &script, "-c", &program]);
    let mut lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    let data = lines.next().unwrap_or_default();
    assert!(data.starts_with("0x"), "{out}");
    let names: Vec<&str> = lines.map(|line| line.split('+').next().unwrap_or_default()).collect();
    // A kernel that does not know that `leaf` has just begun leaves out who called it.
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "inner").collect();
    assert_eq!(names, ["leaf", "ends", "middle", "main", CUT], "{out}");
}

#[test]
fn code_without_a_name_is_shown_by_its_module_and_its_offset() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return };
    if !needs("nm") {
        return;
    }
    let symbols = Command::new("nm").arg(&program).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let leaf = symbols.lines().find(|line| line.ends_with(" leaf")).and_then(|line| line.split(' ').next()).unwrap();
    let leaf = u64::from_str_radix(leaf, 16).unwrap();
    let bare = folder.path().join("bare").display().to_string();
    let script = format!("uprobe:{bare}:{leaf:#x} {{ printf(\"%s%s\\n\", usym(reg(\"ip\")), ustack); exit(); }}");
    let (out, _) = run(&["-e", &script, "-c", &bare]);
    let lines: Vec<&str> = out.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let first = format!("bare+{leaf:#x}");
    assert_eq!(lines[..2], [&first, &first], "{out}");
    assert!(lines.len() >= 5 && lines[..lines.len() - 1].iter().all(|line| line.starts_with("bare+0x")), "{out}");
    assert_eq!(lines.last(), Some(&CUT), "{out}");
}
