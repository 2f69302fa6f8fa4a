# fish completion of dptrace: `dptrace completions fish`. It asks the program, which knows processes, scripts, and what is in a
# trace.

function __dptrace_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    type -q -- "$program"; or set program dptrace
    set -l answer (command $program complete fish -- $words[2..-1] "$current" 2>/dev/null </dev/null)
    or return
    if test (count $answer) -gt 1
        printf '%s\n' $answer[2..-1]
    end
    switch "$answer[1]"
        case 'files*'
            __fish_complete_path "$current"
        case 'directories*'
            __fish_complete_directories "$current"
        case 'commands*'
            complete -C "$current"
    end
end

complete -c dptrace -e
complete -c dptrace -k -f -a '(__dptrace_complete)'
