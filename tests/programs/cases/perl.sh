#!/bin/sh
# hashes, sort, substitution, forks
# needs: perl
# size: short
cat >t.pl <<'PL'
use strict;
my (%h, @a);
open(my $f, "<", $ENV{LINES_FILE}) or die;
while (<$f>) { my @w = split; push @{$h{$w[1]}}, $w[0]; push @a, scalar reverse $_ if $. % 7 == 0; }
my $n = 0;
for my $k (sort { $a <=> $b } keys %h) { $n = ($n * 31 + @{$h{$k}} + $h{$k}[0]) % 1000003; }
my $s = join("", sort @a);
$s =~ s/enil/./g;
$| = 1;
print "$n ", length($s), "\n";
for my $k (1 .. 8) {
  my $pid = fork();
  die unless defined $pid;
  if ($pid == 0) { my @b = map { "$_" x $k } 1 .. 50000; exit(@b == 50000 ? $k : 99); }
  waitpid($pid, 0);
  print $? >> 8, "\n";
}
PL
perl t.pl
