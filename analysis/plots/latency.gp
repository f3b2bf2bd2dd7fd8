# Latency of one malloc by percentile, a panel a thread count; the null kernel's curve is dashed grey.
# Curves merge the launches' histograms; the bars are the intervals over launches.
name = 'latency'
format = ARG1
height = 3.4
load 'common.gp'
load 'latency-vars.gp'
set multiplot layout 1,panels margins 0.085, 1 - label_share, 0.13, 0.92 spacing label_share + 0.06, 0
set logscale y
set yrange [y_low:y_high]
load 'latency-ytics.gp'
set xtics ('50' 0.30103, '90' 1, '99' 2, '99.9' 3, '99.99' 4, '99.999' 5)
set xlabel 'percentile'
do for [k=1:panels] {
  set ylabel (k == 1 ? 'ns for one malloc, clock included' : '')
  unset label
  unset arrow
  unset object
  load sprintf('latency-labels-%d.gp', k)
  base = (k - 1) * (series + 1)
  plot for [i=1:series] 'latency.dat' index base+i-1 using 1:2 with lines lt lt_of[i] lw 1.5, \
       'latency.dat' index base+series using 1:2 with lines lc rgb '#7f7f7f' dt 2 lw 1.5, \
       for [i=1:series] 'latency-bars.dat' index (k-1)*series+i-1 using 1:3:(0):($4-$3) with vectors nohead lt lt_of[i] dt 1 lw 2.5, \
       for [i=1:series] 'latency-bars.dat' index (k-1)*series+i-1 using 1:2 with points lt lt_of[i] pt 7 ps 0.3
}
unset multiplot
