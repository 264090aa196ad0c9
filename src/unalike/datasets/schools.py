"""The 99 schools of Facebook100 beside Penn94, as its files are called."""

SCHOOLS = tuple(
    """
    Harvard1 Columbia2 Stanford3 Yale4 Cornell5 Dartmouth6 UPenn7 MIT8 NYU9 BU10 Brown11
    Princeton12 Berkeley13 Duke14 Georgetown15 UVA16 BC17 Tufts18 Northeastern19
    UIllinois20 UF21 Wellesley22 Michigan23 MSU24 Northwestern25 UCLA26 Emory27 UNC28
    Tulane29 UChicago30 Rice31 WashU32 UC33 UCSD34 USC35 Caltech36 UCSB37 Rochester38
    Bucknell39 Williams40 Amherst41 Swarthmore42 Wesleyan43 Oberlin44 Middlebury45
    Hamilton46 Bowdoin47 Vanderbilt48 Carnegie49 UGA50 USF51 UCF52 FSU53 GWU54
    Johns_Hopkins55 Syracuse56 Notre_Dame57 Maryland58 Maine59 Smith60 UC61 Villanova62
    Virginia63 UC64 Cal65 Mississippi66 Mich67 UCSC68 Indiana69 Vermont70 Auburn71
    USFCA72 Wake73 Santa74 American75 Haverford76 William77 MU78 JMU79 Texas80 Simmons81
    Bingham82 Temple83 Texas84 Vassar85 Pepperdine86 Wisconsin87 Colgate88 Rutgers89
    Howard90 UConn91 UMass92 Baylor93 Tennessee95 Lehigh96 Oklahoma97 Reed98
    Brandeis99 Trinity100
    """.replace("\n", " ").split()
)
"""In the order of their numbers; an underscore stands for a space."""
