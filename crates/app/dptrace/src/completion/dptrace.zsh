#compdef dptrace
# zsh completion of dptrace: `dptrace completions zsh`. It asks the program, which knows processes, scripts, and what is in a
# trace.

_dptrace() {
    local program=${(Q)words[1]} answer offers line value about
    local -a lines values shown how
    local -i longest=0 ret=1

    program=${program/#\~\//$HOME/}
    [[ -x $program || -n ${commands[$program]} ]] || program=dptrace
    answer=$($program complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null) || return 1
    lines=("${(@f)answer}")
    offers=$lines[1]
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*}
        values+=("$value")
        (( $#value > longest )) && longest=$#value
    done
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*} about=${line#*$'\t'}
        # Descriptions take a line each.
        [[ -n $about ]] && how=(-l)
        line="${(r:longest:)value}${about:+  -- $about}"
        shown+=("${line[1,COLUMNS-1]}")
    done
    [[ $offers == *nospace* ]] && how+=(-S '')
    (( $#values )) && compadd -V dptrace -d shown "${how[@]}" -a values && ret=0
    case $offers in
        (files*) [[ $PREFIX == --*=* ]] && compset -P '--*='; _files && ret=0 ;;
        (directories*) [[ $PREFIX == --*=* ]] && compset -P '--*='; _files -/ && ret=0 ;;
        (commands*) _command_names -e && ret=0 ;;
    esac
    return ret
}

# As a file of $fpath this is the function's body; sourced, it is not.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _dptrace "$@"
else
    compdef _dptrace dptrace
fi
