/**
 * How each shell calls `cofferdam __complete` and shows its answer: a candidate per line, with a tab before its
 * description; a last line of `:file`, `:folder` or `:` tells which paths the shell may offer as well.
 */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

const bash = `# cofferdam in bash; in ~/.bashrc: source <(cofferdam completion bash)
_cofferdam() {
  # bash parts words at = and : as well; what has no gap before it belongs to the word before.
  local rest=\${COMP_LINE:0:COMP_POINT} words=() last=-1 word gap i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    gap=\${rest%%[![:space:]]*}
    rest=\${rest#"$gap"}
    word=\${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then word=$rest; fi
    if ((last < 0)) || [[ -n $gap ]]; then
      ((last += 1))
      words[last]=$word
    else
      words[last]+=$word
    fi
    rest=\${rest#"$word"}
  done

  local current=\${words[last]} prefix= about
  case $current in *[=:]*) prefix=\${current%"\${current##*[=:]}"} ;; esac
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    case $word in
      :file | :folder)
        local kind=-f
        if [[ $word == :folder ]]; then kind=-d; fi
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen $kind -- "\${current#"$prefix"}")
        compopt -o filenames 2>/dev/null
        ;;
      :) ;;
      *)
        COMPREPLY+=("\${word#"$prefix"}")
        if [[ $word == *[:/] ]]; then compopt -o nospace 2>/dev/null; fi
        ;;
    esac
  done < <(cofferdam __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _cofferdam cofferdam
`;

const zsh = `#compdef cofferdam
# cofferdam in zsh; in ~/.zshrc, after compinit: source <(cofferdam completion zsh)
_cofferdam() {
  local line word paths
  local -a whole open
  for line in "\${(@f)$(cofferdam __complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    case $line in
      :*) paths=\${line#:} ;;
      *)
        word=\${line%%$'\\t'*}
        [[ $line == *$'\\t'* ]] && line=":\${line#*$'\\t'}" || line=
        if [[ $word == *[:/] ]]; then open+=("\${word//:/\\\\:}$line"); else whole+=("\${word//:/\\\\:}$line"); fi
        ;;
    esac
  done
  (( $#whole )) && _describe -t words cofferdam whole
  (( $#open )) && _describe -t places cofferdam open -S ''
  # The value of --option=value, for paths.
  [[ -n $paths && $PREFIX == --*=* ]] && compset -P '--*='
  [[ $paths == file ]] && _files
  [[ $paths == folder ]] && _files -/
  return 0
}
if [[ $funcstack[1] == _cofferdam ]]; then _cofferdam "$@"; else compdef _cofferdam cofferdam; fi
`;

const fish = `# cofferdam in fish; in ~/.config/fish/config.fish: cofferdam completion fish | source
function __cofferdam_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l before (string match -r -- '^--[^=]+=' $current)
    set -l path (string replace -r -- '^--[^=]+=' '' $current)
    for line in (cofferdam __complete -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':file'
                printf "$before%s\\n" (__fish_complete_path "$path")
            case ':folder'
                printf "$before%s\\n" (__fish_complete_directories "$path")
            case ':'
            case '*'
                echo $line
        end
    end
end
complete -c cofferdam -f -a '(__cofferdam_complete)'
`;

export const SCRIPTS = { bash, zsh, fish } as const satisfies Record<(typeof SHELLS)[number], string>;
