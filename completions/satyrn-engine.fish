# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_satyrn_engine_global_optspecs
    string join \n h/help V/version
end

function __fish_satyrn_engine_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_satyrn_engine_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_satyrn_engine_using_subcommand
    set -l cmd (__fish_satyrn_engine_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c satyrn-engine -n "__fish_satyrn_engine_needs_command" -s h -l help -d 'Print help'
complete -c satyrn-engine -n "__fish_satyrn_engine_needs_command" -s V -l version -d 'Print version'
complete -c satyrn-engine -n "__fish_satyrn_engine_needs_command" -f -a "check" -d 'Judge contracts: silent and 0, or one line on stderr for each refusal and its exit code'
complete -c satyrn-engine -n "__fish_satyrn_engine_needs_command" -f -a "protocol" -d 'Serve one JSON request on stdin with one JSON response on stdout, then exit'
complete -c satyrn-engine -n "__fish_satyrn_engine_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand check" -l repo -d 'The repository the contracts speak of' -r -f -a "(__fish_complete_directories)"
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand check" -l format -d 'Lines on stderr for refusals, or one JSON object a contract on stdout' -r -f -a "line\t'One line for each refusal'
json\t'One JSON object a contract, a line each'"
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand check" -s v -l verbose -d 'Print warnings on stderr too'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand protocol" -s h -l help -d 'Print help'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand help; and not __fish_seen_subcommand_from check protocol help" -f -a "check" -d 'Judge contracts: silent and 0, or one line on stderr for each refusal and its exit code'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand help; and not __fish_seen_subcommand_from check protocol help" -f -a "protocol" -d 'Serve one JSON request on stdin with one JSON response on stdout, then exit'
complete -c satyrn-engine -n "__fish_satyrn_engine_using_subcommand help; and not __fish_seen_subcommand_from check protocol help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
