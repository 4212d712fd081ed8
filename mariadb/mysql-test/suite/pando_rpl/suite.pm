package My::Suite::PandoRpl;

@ISA = qw(My::Suite);

use strict;

# Of the results by the server's version, those of the one that runs.
sub skip_combinations {
  my %skip;
  $skip{'include/by_version.combinations'} = [ $::mysql_version_id >= 110800 ? 'v10_11' : 'v11_8' ];
  %skip;
}

bless { };
